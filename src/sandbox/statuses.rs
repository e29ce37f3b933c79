//! The status names the sandbox speaks. Only `new` is the service's own; the contract shows no other, so the rest is
//! invented here, said to be so on every page, and can be replaced.

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
    /// What is missing for the sandbox to work with these names, if anything.
    pub(crate) fn lack(&self) -> Option<&'static str> {
        let empty = |list: &[String]| list.iter().all(String::is_empty);
        if self.open.first().is_none_or(|first| first != NEW) {
            Some("the open status names must begin with `new`")
        } else if empty(&self.paid) || empty(&self.failed) || empty(&self.reversed) {
            Some("paid, failed and reversed need at least one status name each")
        } else {
            None
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

    #[test]
    fn new_comes_first() {
        let mut statuses = Statuses::default();
        statuses.open.reverse();
        assert!(statuses.lack().is_some());
    }
}
