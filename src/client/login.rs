//! The waiting half of the device login (contract 4.2): polls until a token comes, the service ends the matter, or the
//! code's life is over.
//!
//! [`Plan`] is pure: it is told each answer and says what to do next. [`wait_for_token`] does it. Sources: the contract
//! and RFC 8628, 3.4 and 3.5; A34.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::error::Error;
use super::{Client, TokenPoll};
use crate::secret::Secret;
use crate::shutdown::Shutdown;
use crate::telemetry::escape;
use crate::wire::login::{LoginStarted, TokenIssued};

/// What `slow_down` adds to the interval, for good (RFC 8628, 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);
/// How often the caller hears how much time is left.
const TICK: Duration = Duration::from_secs(1);
/// Longest lifetime and interval taken from the service; longer ones would overflow an instant or outlast a merchant.
const LONGEST: Duration = Duration::from_hours(24);

/// Whoever can ask for the token once. The client in earnest, a script in tests.
pub(crate) trait PollToken {
    /// Asks once.
    fn poll_token(
        &self,
        device_code: &Secret,
    ) -> impl Future<Output = Result<TokenPoll, Error>> + Send;
}

impl PollToken for Client {
    fn poll_token(
        &self,
        device_code: &Secret,
    ) -> impl Future<Output = Result<TokenPoll, Error>> + Send {
        Client::poll_token(self, device_code)
    }
}

/// What the caller is told while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick<'a> {
    /// What is left of the code's life.
    pub left: Duration,
    /// What the last poll met, when it yielded no answer.
    pub trouble: Option<&'a Error>,
}

/// A login that yielded no token. The old login stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The merchant did not confirm in time.
    #[error("the login code has expired")]
    Expired {
        /// What the last poll met, when it yielded no answer.
        #[source]
        trouble: Option<Error>,
    },
    /// The merchant refused.
    #[error("the login was refused in the cabinet")]
    Denied,
    /// The service ended it with a word of its own.
    #[error("the payment service ended the login with {status}{}", text.as_deref().map(|text| format!(": {}", escape(text))).unwrap_or_default())]
    Ended {
        /// The HTTP status.
        status: u16,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// An answer that may have held the token was lost, and no later one cleared it up.
    #[error("an answer was lost, and the login may have been granted in it")]
    MayHaveBeenGranted {
        /// How the last lost answer was lost.
        #[source]
        lost: Error,
    },
    /// Asking could not go on.
    #[error("could not ask for the token")]
    Unaskable(#[source] Error),
    /// The caller wanted to stop.
    #[error("the login was cancelled")]
    Cancelled {
        /// True when a poll was under way or its answer lost: the token may have been issued all the same.
        may_have_been_granted: bool,
    },
}

/// The poll plan of one login: how long to wait next, and what an answer means.
#[derive(Debug)]
struct Plan {
    interval: Duration,
    /// The lost answer that no later one has cleared up. "Pending" clears it up: what is still pending was not granted.
    lost: Option<Error>,
    /// Trouble that can have granted nothing.
    trouble: Option<Error>,
}

impl Plan {
    fn new(interval: Duration) -> Self {
        Self {
            interval: interval.min(LONGEST),
            lost: None,
            trouble: None,
        }
    }

    /// Takes an answer. `Err` ends the login; `Ok` is how long to wait before the next poll.
    fn hear(
        &mut self,
        answer: Result<TokenPoll, Error>,
    ) -> Result<Duration, Result<TokenIssued, LoginError>> {
        match answer {
            Ok(TokenPoll::Issued(issued)) => Err(Ok(issued)),
            Ok(TokenPoll::Pending) => {
                (self.lost, self.trouble) = (None, None);
                Ok(self.interval)
            }
            Ok(TokenPoll::SlowDown) => {
                (self.lost, self.trouble) = (None, None);
                self.interval = (self.interval + SLOWER_BY).min(LONGEST);
                Ok(self.interval)
            }
            Ok(TokenPoll::Denied) => Err(Err(LoginError::Denied)),
            Ok(TokenPoll::Expired) => Err(Err(self.run_out())),
            // A code that was redeemed by a lost answer is unknown to the service afterwards.
            Ok(TokenPoll::Ended { status, text }) => Err(Err(match self.lost.take() {
                Some(lost) => LoginError::MayHaveBeenGranted { lost },
                None => LoginError::Ended { status, text },
            })),
            Err(error) if error.is_transient() => {
                let wait = self.interval.max(error.retry_after().unwrap_or_default());
                if error.may_have_acted() {
                    self.lost = Some(error);
                } else {
                    self.trouble = Some(error);
                }
                Ok(wait)
            }
            Err(error) => Err(Err(LoginError::Unaskable(error))),
        }
    }

    /// The code's life is over.
    fn run_out(&mut self) -> LoginError {
        match self.lost.take() {
            Some(lost) => LoginError::MayHaveBeenGranted { lost },
            None => LoginError::Expired {
                trouble: self.trouble.take(),
            },
        }
    }

    fn tick(&self, left: Duration) -> Tick<'_> {
        Tick {
            left,
            trouble: self.lost.as_ref().or(self.trouble.as_ref()),
        }
    }
}

/// Polls until the login is decided. Waits one interval before the first poll; what may pass (no connection, lost answers,
/// 408, 429, 5xx) is waited out until the code expires; a poll under way when it expires is heard out. Calls `on_tick`
/// about once a second while waiting.
pub(crate) async fn wait_for_token(
    service: &impl PollToken,
    started: &LoginStarted,
    mut on_tick: impl FnMut(Tick<'_>),
    cancel: &Shutdown,
) -> Result<TokenIssued, LoginError> {
    let deadline = Instant::now() + Duration::from_secs(started.expires_in_s).min(LONGEST);
    let mut plan = Plan::new(Duration::from_secs(started.interval_s));
    let mut wait = plan.interval;
    loop {
        let next = Instant::now() + wait;
        let until = next.min(deadline);
        while Instant::now() < until {
            let now = Instant::now();
            on_tick(plan.tick(deadline - now));
            tokio::select! {
                () = sleep_until(until.min(now + TICK)) => {}
                () = cancel.requested() => {
                    return Err(LoginError::Cancelled { may_have_been_granted: plan.lost.is_some() });
                }
            }
        }
        if next > deadline {
            return Err(plan.run_out());
        }
        let answer = tokio::select! {
            // An answer that is there is taken before a wish to stop: it may be the token.
            biased;
            answer = service.poll_token(&started.device_code) => answer,
            () = cancel.requested() => return Err(LoginError::Cancelled { may_have_been_granted: true }),
        };
        match plan.hear(answer) {
            Ok(pause) => wait = pause,
            Err(end) => return end,
        }
    }
}

#[cfg(test)]
mod tests {
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
            host: None,
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
            (vec![lost(), Ok(TokenPoll::Denied)], false),
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
            let (end, ()) =
                tokio::join!(wait_for_token(&script, &started, |_tick| {}, &cancel), stop);
            let Err(LoginError::Cancelled {
                may_have_been_granted,
            }) = end
            else {
                panic!("{end:?}")
            };
            assert_eq!(may_have_been_granted, wanted);
        }
    }
}
