//! A storm: many orders at once, all of it drawn, while tilld is killed, the service is away and whatever else goes wrong by
//! chance. When it is over, and everything works again, the ledger must come to what the service's book says.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::draw::{Drawn, Happens, Plan, Round};
use super::scene::{Scene, Tilld};
use super::step::Storm;
use crate::cli::stage::trouble::Trouble;
use crate::sandbox::VisitError;

/// A service that is away is so for this long at least: enough for several questions that meet nobody.
const AWAY: Duration = Duration::from_millis(1_200);

/// Plays it.
pub(super) async fn play(
    scene: &Scene<'_>,
    tilld: &mut Tilld<'_>,
    storm: &Storm,
    drawn: &Drawn,
) -> Result<(), Trouble> {
    scene
        .control("/faults", &json!({ "rates": storm.rates }))
        .await?;
    for (number, round) in drawn.rounds.iter().enumerate() {
        if round.is_away {
            away(scene, true).await?;
        }
        let acts = drawn.orders.iter().map(|plan| act(scene, plan, number));
        let (acted, killed, ()) = tokio::join!(
            all(acts),
            kill(tilld, round),
            sleep(if round.is_away { AWAY } else { Duration::ZERO }),
        );
        killed?;
        acted?;
        if round.is_away {
            away(scene, false).await?;
        }
    }
    scene.control("/faults", &json!({ "reset": true })).await?;
    Ok(())
}

/// All of them, side by side on this thread. The first trouble ends it.
async fn all<F: Future<Output = Result<(), Trouble>>>(
    acts: impl Iterator<Item = F>,
) -> Result<(), Trouble> {
    let mut going: Vec<Pin<Box<F>>> = acts.map(Box::pin).collect();
    poll_fn(|context| {
        let mut trouble = None;
        going.retain_mut(|act| match act.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(found)) => {
                trouble.get_or_insert(found);
                false
            }
        });
        match trouble {
            Some(trouble) => Poll::Ready(Err(trouble)),
            None if going.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}

/// What happens to an order in a round: in the first one it is opened.
async fn act(scene: &Scene<'_>, plan: &Plan, round: usize) -> Result<(), Trouble> {
    let order = plan.asked.order.as_str();
    let Some(at) = round.checked_sub(1) else {
        return scene.open_surely(&plan.asked).await;
    };
    let Some(happens) = plan.course.get(at) else {
        return Ok(());
    };
    match happens {
        Happens::Pay => scene.happen(order, "paid").await,
        Happens::PayLess => scene.happen(order, "paid-less").await,
        Happens::PayMore => scene.happen(order, "paid-more").await,
        Happens::Cancel => scene.happen(order, "cancel").await,
        Happens::Expire => scene.happen(order, "expire").await,
        // Nobody may listen just now.
        Happens::Forge => scene.forge(order).await.map(|_status| ()),
        Happens::Repeat => {
            let path = format!("/invoices/{order}/notify");
            match scene.control(&path, &json!({})).await {
                // It is on its way, later than whoever asked for it waits. What comes of it is judged at the end.
                Err(Trouble::Visit(VisitError::Unanswered { .. })) => Ok(()),
                sent => sent.map(|_answers| ()),
            }
        }
    }
}

async fn kill(tilld: &mut Tilld<'_>, round: &Round) -> Result<(), Trouble> {
    for ms in &round.kills_ms {
        sleep(Duration::from_millis(*ms)).await;
        tilld.down().await?;
        tilld.up().await?;
    }
    Ok(())
}

/// The service gives no answers, or does again.
async fn away(scene: &Scene<'_>, is_away: bool) -> Result<(), Trouble> {
    for endpoint in ["create", "fetch"] {
        let fault = json!({ "endpoint": endpoint, "kind": "cut", "times": is_away });
        let asked = json!({ "api_status": fault });
        scene.control("/faults", &asked).await?;
    }
    Ok(())
}

/// What was drawn, a line each.
pub(super) fn told(drawn: &Drawn) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in &drawn.orders {
        let asked = &plan.asked;
        let course: Vec<&str> = plan.course.iter().map(|happens| happens.word()).collect();
        let course = if course.is_empty() {
            "nothing".to_owned()
        } else {
            course.join(", ")
        };
        lines.push(format!("{}: {course}", super::report::opened(asked)));
    }
    for (number, round) in drawn.rounds.iter().enumerate() {
        for ms in &round.kills_ms {
            lines.push(format!("round {number}: tilld is killed after {ms} ms"));
        }
        if round.is_away {
            lines.push(format!("round {number}: the service is away"));
        }
    }
    lines
}
