//! The status names the sandbox speaks. Only `new` is the service's own; the contract shows no other, so the rest is
//! invented here, said to be so on every page, and can be replaced.

use std::borrow::Cow;

use crate::invoice::status::StatusLists;

/// The one status name the contract shows.
pub(crate) const NEW: &str = "new";

/// The sandbox's status names, sorted. `open` begins with `new`; `paid`, `failed` and `reversed` have at least one each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statuses {
    /// Not final. The first is `new`; the second, where there is one, says that the customer has acted.
    pub open: Vec<String>,
    /// Paid. The first is used.
    pub paid: Vec<String>,
    /// Ended without money. The first is used when cancelled, the last when the payment window closed.
    pub failed: Vec<String>,
    /// Money given back. The first is used.
    pub reversed: Vec<String>,
}

impl Default for Statuses {
    fn default() -> Self {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        Self {
            open: names(&[NEW, "waiting"]),
            paid: names(&["paid"]),
            failed: names(&["canceled", "expired"]),
            reversed: names(&["refunded"]),
        }
    }
}

/// What happens to an invoice on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The customer has acted, nothing has arrived yet.
    Waiting,
    /// Paid in full.
    Paid,
    /// Paid, with less than was asked.
    PaidLess,
    /// Paid, with more than was asked.
    PaidMore,
    /// Cancelled.
    Canceled,
    /// The payment window closed.
    Expired,
    /// The money went back.
    Refunded,
}

impl Happening {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Paid,
        Self::PaidLess,
        Self::PaidMore,
        Self::Canceled,
        Self::Expired,
        Self::Refunded,
    ];

    /// The word a form sends.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Paid => "paid",
            Self::PaidLess => "paid-less",
            Self::PaidMore => "paid-more",
            Self::Canceled => "cancel",
            Self::Expired => "expire",
            Self::Refunded => "refund",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

impl Statuses {
    /// What keeps the sandbox from working with these names, if anything: what tilld's own config would refuse, in its words,
    /// or that one is missing.
    pub(crate) fn lack(&self) -> Option<Cow<'static, str>> {
        if self.open.first().is_none_or(|first| first != NEW) {
            return Some("the open status names must begin with `new`".into());
        }
        if [&self.paid, &self.failed, &self.reversed]
            .into_iter()
            .any(Vec::is_empty)
        {
            return Some("paid, failed and reversed need at least one status name each".into());
        }
        let rule = self.lists().rule()?;
        Some(format!("the lists of status names {rule}").into())
    }

    /// The lists as tilld's config has them.
    fn lists(&self) -> StatusLists {
        StatusLists {
            open: self.open.clone(),
            paid: self.paid.clone(),
            failed: self.failed.clone(),
            reversed: self.reversed.clone(),
        }
    }

    /// The name for what happened. `None` for waiting when there is no second open name.
    pub(crate) fn name(&self, happening: Happening) -> Option<&str> {
        let name = match happening {
            Happening::Waiting => self.open.get(1),
            Happening::Paid | Happening::PaidLess | Happening::PaidMore => self.paid.first(),
            Happening::Canceled => self.failed.first(),
            Happening::Expired => self.failed.last(),
            Happening::Refunded => self.reversed.first(),
        };
        name.map(String::as_str)
    }

    /// What a status says that was set by its name alone. `None` when it can be told of nothing that happens here.
    pub(crate) fn happening(&self, status: &str) -> Option<Happening> {
        if self.is_paid(status) {
            Some(Happening::Paid)
        } else if self.is_failed(status) {
            let is = |happening| self.name(happening) == Some(status);
            if is(Happening::Canceled) && !is(Happening::Expired) {
                Some(Happening::Canceled)
            } else {
                Some(Happening::Expired)
            }
        } else if self.reversed.iter().any(|name| name == status) {
            Some(Happening::Refunded)
        } else {
            (self.name(Happening::Waiting) == Some(status)).then_some(Happening::Waiting)
        }
    }

    /// True when an invoice with this status ends and gives its requisite back. Names of no list are not final.
    pub(crate) fn is_final(&self, status: &str) -> bool {
        [&self.paid, &self.failed, &self.reversed]
            .into_iter()
            .any(|list| list.iter().any(|name| name == status))
    }

    /// True when the status says paid.
    pub(crate) fn is_paid(&self, status: &str) -> bool {
        self.paid.iter().any(|name| name == status)
    }

    /// True when the status says that it ended without money.
    pub(crate) fn is_failed(&self, status: &str) -> bool {
        self.failed.iter().any(|name| name == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_fit_what_happens() {
        let statuses = Statuses::default();
        assert_eq!(statuses.lack(), None);
        for (happening, name) in [
            (Happening::Waiting, "waiting"),
            (Happening::PaidLess, "paid"),
            (Happening::PaidMore, "paid"),
            (Happening::Canceled, "canceled"),
            (Happening::Expired, "expired"),
            (Happening::Refunded, "refunded"),
        ] {
            assert_eq!(statuses.name(happening), Some(name));
            assert_eq!(Happening::parse(happening.word()), Some(happening));
        }
        assert!(statuses.is_final("expired") && !statuses.is_final("waiting"));
    }

    /// What is at stake: with `new` among the paid ones a fresh invoice says that money has come.
    #[test]
    fn what_tilld_would_refuse_is_refused_in_its_words() {
        let lack = |spoil: fn(&mut Statuses)| {
            let mut statuses = Statuses::default();
            spoil(&mut statuses);
            statuses.lack().unwrap_or_default().into_owned()
        };
        for (said, wanted) in [
            (
                lack(|names| names.paid = vec![NEW.to_owned()]),
                "must hold a name on one list only, but `open` and `paid` share one",
            ),
            (
                lack(|names| names.failed.push("expired".to_owned())),
                "must hold a name once, but `failed` repeats one",
            ),
            (
                lack(|names| names.reversed.push(String::new())),
                "must hold names of 1 to 128 bytes, also in `reversed`",
            ),
            (lack(|names| names.paid.clear()), "need at least one"),
        ] {
            assert!(said.contains(wanted), "{said}");
        }
    }

    #[test]
    fn a_name_for_two_things_says_the_one_that_leads_to_the_error_page() {
        let mut statuses = Statuses::default();
        assert_eq!(statuses.happening("canceled"), Some(Happening::Canceled));
        assert_eq!(statuses.happening("expired"), Some(Happening::Expired));
        assert_eq!(statuses.happening("other"), None);
        statuses.failed.pop();
        assert_eq!(statuses.happening("canceled"), Some(Happening::Expired));
    }

    #[test]
    fn new_comes_first() {
        let mut statuses = Statuses::default();
        statuses.open.reverse();
        assert!(statuses.lack().is_some());
    }
}
