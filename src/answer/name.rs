//! What an invoice is called by: an order id, an invoice id or a ref, each with a flag and a path of its own.
//!
//! Relies on `percent` for what stands in a path. Promises one row for each kind: the command line and the control socket take a name from the same table.
//! Pure.

use std::fmt;

use percent_encoding::utf8_percent_encode;

use super::invoice::quoted;
use crate::percent::SEGMENT;

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The merchant's order id: it names all invoices of the order.
    Order,
    /// The service's id of one invoice.
    Id,
    /// The last segment of one invoice's notificationUrl.
    Ref,
}

/// A name of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its kind.
    pub(crate) kind: Kind,
    /// The text, to the letter.
    pub(crate) text: String,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Order, Self::Id, Self::Ref];

    /// In words, its flag, and the path in front of it.
    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Order => ("order", "--order", "/v1/orders/"),
            Self::Id => ("invoice id", "--id", "/v1/invoices/by-id/"),
            Self::Ref => ("ref", "--ref", "/v1/invoices/by-ref/"),
        }
    }

    /// This text as a name of this kind.
    pub(crate) fn of(self, text: impl Into<String>) -> Name {
        Name {
            kind: self,
            text: text.into(),
        }
    }
}

/// In words.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.row().0, self.text)
    }
}

impl Name {
    /// The flag with its value, as a person types it in a shell. Behind `=` a value that begins with a hyphen is no flag.
    pub(crate) fn flag(&self) -> String {
        let between = if self.text.starts_with('-') { "=" } else { " " };
        format!("{}{between}{}", self.kind.row().1, quoted(&self.text))
    }

    /// The path on the control socket, with the text as one segment of it.
    pub(crate) fn path(&self) -> String {
        let segment = utf8_percent_encode(&self.text, SEGMENT);
        format!("{}{segment}", self.kind.row().2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_segment_of_the_path_of_its_kind() {
        for (name, wanted) in [
            (Kind::Order.of("1042"), "/v1/orders/1042"),
            (
                Kind::Id.of("a/b?c#d%"),
                "/v1/invoices/by-id/a%2Fb%3Fc%23d%25",
            ),
            (
                Kind::Order.of("заказ 1"),
                "/v1/orders/%D0%B7%D0%B0%D0%BA%D0%B0%D0%B7%201",
            ),
            (Kind::Ref.of("a-_"), "/v1/invoices/by-ref/a-_"),
        ] {
            assert_eq!(name.path(), wanted);
        }
    }

    #[test]
    fn a_flag_can_be_typed_whatever_the_text_is() {
        for (name, wanted) in [
            (Kind::Id.of("501"), "--id 501"),
            (Kind::Order.of("x; $(cmd)"), "--order 'x; $(cmd)'"),
            (Kind::Ref.of("-a"), "--ref='-a'"),
            (Kind::Id.of("it's"), r"--id 'it'\''s'"),
        ] {
            assert_eq!(name.flag(), wanted);
        }
    }
}
