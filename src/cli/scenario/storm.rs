//! A storm: many orders at once, all of it drawn, while tilld is killed, the service is away and whatever else goes wrong by
//! chance. When it is over, and everything works again, the ledger must come to what the service's book says.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::draw::{Drawn, Happens, Plan, Round};
use super::report::Row;
use super::scene::{Scene, Tilld};
use super::step::Storm;
use crate::cli::stage::trouble::Trouble;
use crate::sandbox::{VisitError, encode};
use crate::telemetry::chain;

/// A service that is away is so for this long at least: enough for several questions that meet nobody.
const AWAY: Duration = Duration::from_millis(1_200);

/// Plays it. Gives a row for each order that something went wrong with.
pub(super) async fn play(
    scene: &Scene<'_>,
    tilld: &mut Tilld<'_>,
    storm: &Storm,
    drawn: &Drawn,
) -> Result<Vec<Row>, Trouble> {
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
        if round.is_away {
            away(scene, false).await?;
        }
        if !acted.is_empty() {
            let row = |(at, trouble): (usize, Trouble)| {
                let plan = drawn.orders.get(at);
                let order = plan.map_or("an order", |plan| plan.asked.order.as_str());
                Row::new(order, "done", chain(&trouble))
            };
            return Ok(acted.into_iter().map(row).collect());
        }
    }
    scene.control("/faults", &json!({ "reset": true })).await?;
    Ok(Vec::new())
}

/// All of them to their ends, side by side on this thread. Gives the troubles with the places of those that had them, in that
/// order: which of them was the first is an accident.
async fn all<F: Future<Output = Result<(), Trouble>>>(
    acts: impl Iterator<Item = F>,
) -> Vec<(usize, Trouble)> {
    let mut going: Vec<(usize, Pin<Box<F>>)> = acts.map(Box::pin).enumerate().collect();
    let mut troubles = Vec::new();
    poll_fn(|context| {
        going.retain_mut(|(at, act)| match act.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(found)) => {
                troubles.push((*at, found));
                false
            }
        });
        if going.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    troubles.sort_by_key(|(at, _)| *at);
    troubles
}

/// What happens to an order in a round: in the first one it is opened.
async fn act(scene: &Scene<'_>, plan: &Plan, round: usize) -> Result<(), Trouble> {
    let (order, method) = (plan.asked.order.as_str(), plan.asked.method);
    let Some(at) = round.checked_sub(1) else {
        return scene.open_surely(&plan.asked).await;
    };
    let Some(happens) = plan.course.get(at) else {
        return Ok(());
    };
    match happens {
        Happens::Pay => scene.happen_by(order, method, "paid").await,
        Happens::PayLess => scene.happen_by(order, method, "paid-less").await,
        Happens::PayMore => scene.happen_by(order, method, "paid-more").await,
        Happens::Cancel => scene.happen_by(order, method, "cancel").await,
        Happens::Expire => scene.happen_by(order, method, "expire").await,
        // Nobody may listen just now.
        Happens::Forge => scene.forge(order).await.map(|_status| ()),
        Happens::Repeat => {
            let path = format!("/invoices/{}/notify", encode(order));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn troubles_are_told_in_the_order_of_the_orders() {
        let acts = [30, 10, 20].into_iter().map(|ms| async move {
            sleep(Duration::from_millis(ms)).await;
            if ms == 20 {
                return Ok(());
            }
            Err(Trouble::otherwise("nothing", ms.to_string()))
        });
        let troubles = all(acts).await;
        let places: Vec<usize> = troubles.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [0, 1]);
    }
}
