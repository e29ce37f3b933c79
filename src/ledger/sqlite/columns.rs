//! The columns of an invoice: names and numbers from one list, so that a row is read by number and the code by name.
//! SQLite looks a name up among all of a row's names, and a notification reads as many values as there are.

macro_rules! columns {
    (@name $name:ident) => { concat!("i.", stringify!($name)) };
    (@name $name:ident $in_file:literal) => { $in_file };
    ($first:ident $(, $name:ident $(= $in_file:literal)?)* $(,)?) => {
        /// All of them, to be selected from `invoice i`.
        pub(super) const INVOICE: &str = concat!(
            "i.", stringify!($first) $(, ", ", columns!(@name $name $($in_file)?))*
        );

        /// One invoice by its key.
        pub(super) const BY_KEY: &str = concat!(
            "SELECT i.", stringify!($first) $(, ", ", columns!(@name $name $($in_file)?))*,
            " FROM invoice i WHERE i.id = ?1"
        );

        /// Where each stands in [`INVOICE`].
        #[expect(non_upper_case_globals, reason = "the names are the columns'")]
        pub(super) mod at {
            #[expect(non_camel_case_types, reason = "the names are the columns'")]
            enum Place { $first $(, $name)* }
            pub(in super::super) const $first: usize = Place::$first as usize;
            $(pub(in super::super) const $name: usize = Place::$name as usize;)*
        }
    };
}

columns! {
    id, reference = "i.ref", order_id, invoice_id, mode, method, opening, opening_note, creator_boot,
    creator_pid, creator_start, creator_deadline_ms, amount_asked, currency_asked, amount_agreed,
    currency_agreed, amount_reported, currency_reported,
    revision, status, claim_differs, claim_ns, sorted_status, sorted_meaning, sorted_differs, sorted_ns, sorted_settled,
    outcome, outcome_ms, found_by, doubt, doubted, pending, paid_counted, paid_fired, failed_fired,
    sorted_by, generation, attention, unresolved, requisites, payment_url,
    raw, expire_ms, heard_ms, created_ms, updated_ms, newest_ns,
    superseded = "(SELECT s.ref||' '||s.outcome||' '||s.amount_agreed||' '||s.currency_agreed||' '||ifnull(s.invoice_id,'')
 FROM invoice s WHERE s.order_id=i.order_id AND s.rank>abs(i.rank) ORDER BY s.rank DESC LIMIT 1)",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_place_of_its_name() {
        let names: Vec<&str> = INVOICE.split(", ").collect();
        for (name, place) in [
            ("i.id", at::id),
            ("i.ref", at::reference),
            ("i.created_ms", at::created_ms),
        ] {
            assert_eq!(names.get(place), Some(&name));
        }
        assert_eq!(names.len(), at::superseded + 1);
    }
}
