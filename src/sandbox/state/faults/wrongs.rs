//! What is set to go wrong: with everything, or with one invoice, its requests and its notifications.

use super::{ApiFault, Endpoint, Presentation, StandIn, Times};

/// Faults that are set. The default is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrongs {
    /// Notifications are never sent.
    pub(crate) lose: Times,
    /// Sent more than once.
    pub(crate) repeat: Times,
    /// Copies beyond the first of a repeated one, 1 unless told.
    pub(crate) copies: u32,
    /// Each waits so long first, ms.
    pub(crate) delay_ms: u64,
    /// Each is held until the next one of its invoice has gone out.
    pub(crate) reorder: bool,
    /// Carry a wrong token of the right length.
    pub(crate) wrong_token: Times,
    /// Carry no token.
    pub(crate) missing_token: Times,
    /// End in the middle of their body, with the connection.
    pub(crate) torn: Times,
    /// Their body comes in pieces, with pauses.
    pub(crate) slow: Times,
    /// The sender waits so long for an answer, ms. `None`: as long as it does otherwise.
    pub(crate) give_up_ms: Option<u64>,
    /// Where the token stands. `None`: where it stands otherwise.
    pub(crate) presentation: Option<Presentation>,
    /// A create answer is held so long while a notification of the new invoice goes first, ms.
    pub(crate) hold_create_ms: u64,
    /// Creates whose invoice is made and whose answer never comes.
    pub(crate) drop_create_answer: Times,
    /// No requisite is free, whatever the pool holds.
    pub(crate) no_requisites: Times,
    /// How far the service's clock is off in `updatedAt`, ms.
    pub(crate) clock_skew_ms: i64,
    /// `updatedAt` stays as it is when the status changes.
    pub(crate) same_instant: bool,
    /// Answers that stand in for an endpoint's own, at most one for each.
    pub(super) api: Vec<ApiFault>,
}

impl Default for Wrongs {
    fn default() -> Self {
        Self {
            lose: Times::Never,
            repeat: Times::Never,
            copies: 1,
            delay_ms: 0,
            reorder: false,
            wrong_token: Times::Never,
            missing_token: Times::Never,
            torn: Times::Never,
            slow: Times::Never,
            give_up_ms: None,
            presentation: None,
            hold_create_ms: 0,
            drop_create_answer: Times::Never,
            no_requisites: Times::Never,
            clock_skew_ms: 0,
            same_instant: false,
            api: Vec::new(),
        }
    }
}

impl Wrongs {
    /// Sets what an endpoint answers instead of its own, replacing what was set for it; never: takes it off.
    pub(crate) fn set_api(&mut self, fault: ApiFault) {
        self.api.retain(|old| old.endpoint != fault.endpoint);
        if fault.times != Times::Never {
            self.api.push(fault);
        }
    }

    /// What is set for an endpoint's next answer; counts it, and forgets what is used up.
    pub(super) fn take_api(&mut self, endpoint: Endpoint) -> Option<StandIn> {
        let set = self.api.iter_mut().find(|f| f.endpoint == endpoint)?;
        let answer = set.times.take().then(|| set.answer.clone());
        self.api.retain(|fault| fault.times != Times::Never);
        answer
    }

    /// The stand-ins that are set.
    pub(crate) fn api(&self) -> &[ApiFault] {
        &self.api
    }
}
