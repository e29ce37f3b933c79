//! The poll plan and the wait, in virtual time.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::client::error::Foreign;

type Answers = VecDeque<Result<TokenPoll, Error>>;

/// Gives its answers in order, the last one for ever, and remembers when it was asked.
struct Script {
    start: Instant,
    rest: Mutex<(Answers, Vec<u64>)>,
    stuck: bool,
}

impl PollToken for Script {
    async fn poll_token(&self, device_code: &Secret) -> Result<TokenPoll, Error> {
        assert_eq!(device_code.expose(), "dc_1");
        if self.stuck {
            std::future::pending::<()>().await;
        }
        let mut rest = self.rest.lock().expect("one thread");
        rest.1.push(self.start.elapsed().as_secs());
        rest.0.pop_front().unwrap_or(Ok(TokenPoll::Pending))
    }
}

fn issued() -> TokenPoll {
    TokenPoll::Issued(TokenIssued {
        token: Secret::new("shop:token"),
        shop_name: "Shop".into(),
    })
}

fn busy(status: u16, retry_after_s: Option<u64>) -> Result<TokenPoll, Error> {
    Err(Error::Busy {
        status,
        retry_after: retry_after_s.map(Duration::from_secs),
        text: None,
    })
}

fn lost() -> Result<TokenPoll, Error> {
    Err(Error::NotTheService {
        why: Foreign::TooLarge,
    })
}

fn ended(text: &str) -> TokenPoll {
    TokenPoll::Ended {
        status: 400,
        text: Some(text.into()),
    }
}

async fn run(
    answers: impl IntoIterator<Item = Result<TokenPoll, Error>>,
) -> (Result<TokenIssued, LoginError>, Vec<u64>) {
    let rest = Mutex::new((answers.into_iter().collect(), Vec::new()));
    let script = Script {
        start: Instant::now(),
        rest,
        stuck: false,
    };
    let started = LoginStarted {
        device_code: Secret::new("dc_1"),
        user_code: "ABCD-EFGH".into(),
        verification_url: "https://cabinet.example/activate?code=ABCD-EFGH".into(),
        expires_in_s: 600,
        interval_s: 5,
    };
    let end = wait_for_token(&script, &started, |_tick| {}, &Shutdown::new()).await;
    let asked = script.rest.into_inner().expect("one thread").1;
    (end, asked)
}

#[tokio::test(start_paused = true)]
async fn hiccups_are_waited_out_and_slow_down_holds_for_good() {
    let answers = [
        Ok(TokenPoll::Pending),
        Ok(TokenPoll::SlowDown),
        lost(),
        busy(502, None),
        busy(429, Some(30)),
        Ok(TokenPoll::Pending),
        Ok(issued()),
    ];
    let (end, asked) = run(answers).await;
    assert_eq!(end.expect("granted").token.expose(), "shop:token");
    assert_eq!(asked, [5, 10, 20, 30, 40, 70, 80]);
}

#[tokio::test(start_paused = true)]
async fn a_code_nobody_confirms_expires() {
    let (end, asked) = run([]).await;
    assert!(
        matches!(end, Err(LoginError::Expired { trouble: None })),
        "{end:?}"
    );
    assert_eq!((asked.len(), asked.last()), (120, Some(&600)));
}

#[tokio::test(start_paused = true)]
async fn refusal_and_expiry_end_it_at_once_each_in_its_own_way() {
    let (end, asked) = run([Ok(TokenPoll::Denied)]).await;
    assert!(matches!(end, Err(LoginError::Denied)));
    assert_eq!(asked, [5]);
    assert!(matches!(
        run([Ok(TokenPoll::Expired)]).await.0,
        Err(LoginError::Expired { .. })
    ));
    let (end, _) = run([Ok(ended("invalid_grant"))]).await;
    assert_eq!(
        end.expect_err("ended").to_string(),
        "the payment service ended the login with 400: invalid_grant"
    );
    let redirected = Err(Error::Redirected {
        status: 302,
        target: None,
    });
    assert!(matches!(
        run([redirected]).await.0,
        Err(LoginError::Unaskable(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_may_have_been_the_token_until_a_later_one_says_pending() {
    for (answers, doubtful) in [
        (vec![lost(), Ok(TokenPoll::Expired)], true),
        (vec![lost(), Ok(ended("invalid_grant"))], true),
        (
            vec![busy(504, None), busy(429, None), Ok(TokenPoll::Expired)],
            true,
        ),
        (
            vec![lost(), Ok(TokenPoll::Pending), Ok(TokenPoll::Expired)],
            false,
        ),
        (vec![lost(), Ok(TokenPoll::Denied)], true),
        (
            vec![lost(), Ok(TokenPoll::Pending), Ok(TokenPoll::Denied)],
            false,
        ),
        (vec![busy(429, None), Ok(TokenPoll::Expired)], false),
    ] {
        let shown = format!("{answers:?}");
        let (end, _) = run(answers).await;
        assert_eq!(
            matches!(end, Err(LoginError::MayHaveBeenGranted { .. })),
            doubtful,
            "{shown}"
        );
    }
    // A wish to wait beyond the code's life is kept: no poll comes earlier than the service asked for.
    let (end, asked) = run([busy(503, Some(3_600)), Ok(issued())]).await;
    assert!(
        matches!(end, Err(LoginError::MayHaveBeenGranted { .. })),
        "{end:?}"
    );
    assert_eq!(asked, [5]);
}

#[tokio::test(start_paused = true)]
async fn a_wish_to_stop_is_heard_while_waiting_and_while_asking() {
    for (stuck, wanted) in [(false, false), (true, true)] {
        let script = Script {
            start: Instant::now(),
            rest: Mutex::default(),
            stuck,
        };
        let started = LoginStarted {
            device_code: Secret::new("dc_1"),
            user_code: String::new(),
            verification_url: String::new(),
            expires_in_s: u64::MAX,
            interval_s: 5,
        };
        let cancel = Shutdown::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(7_500)).await;
            cancel.request();
        };
        let (end, ()) = tokio::join!(wait_for_token(&script, &started, |_tick| {}, &cancel), stop);
        let Err(LoginError::Cancelled {
            may_have_been_granted,
        }) = end
        else {
            panic!("{end:?}")
        };
        assert_eq!(may_have_been_granted, wanted);
    }
}
