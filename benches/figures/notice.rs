//! A notification as the service sends it: the invoice object of contract 2.3 in 858 bytes, which is what a real one was
//! measured to be. What changes from one to the next has a fixed place, so that a sender only writes over it.

use tilld::bench::Stocked;

/// Bytes of a body.
pub(crate) const BODY_BYTES: usize = 858;

/// Statuses that are sent in turn: each is another than the one before, so that each notification makes an event. Of one
/// length; the first is the one a stocked invoice does not have yet.
pub(crate) const STATUSES: [&str; 2] = ["wip", "new"];

/// The status in an invoice's notification. `number` counts them, from 0.
pub(crate) fn status(number: u64) -> &'static str {
    let [even, odd] = STATUSES;
    if number.is_multiple_of(2) { even } else { odd }
}

/// The instant of an invoice's notification, as `updatedAt` has it. `number` counts them, from 0, up to a billion.
pub(crate) fn updated_at(number: u64) -> String {
    let (seconds, millis) = (number / 1000, number % 1000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hours, minute) = (minutes / 60, minutes % 60);
    let (day, hour) = (hours / 24, hours % 24);
    let (month, day) = (1 + day / 28, 1 + day % 28);
    format!("2024-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The body of an invoice's notification with this number, from 0.
pub(crate) fn body(of: &Stocked, number: u64) -> String {
    let status = status(number);
    let at = updated_at(number);
    let Stocked {
        invoice_id,
        order_id,
        ..
    } = of;
    let requisites = r#"{\"bankName\":\"Example Bank\",\"phoneNumber\":\"+70000000000\",\"fullName\":\"Ivan I.\"}"#;
    let mut body = format!(
        r#"{{"id":"{invoice_id}","direction":"in","status":"{status}","updatedAt":"{at}","paymentMethod":"SBP","paymentOption":"SBP","amount":"1500.00","currency":"RUB","expireAt":"2024-12-31T00:00:00.000Z","requisiteId":"00000000-0000-4000-9000-000000000001","dealRequisites":"{requisites}","dealRate":"92.35","createdAt":"2023-11-14T22:13:20.000Z","internalId":"{order_id}","merchantName":""#
    );
    let end = r#""}"#;
    let room = BODY_BYTES
        .checked_sub(body.len() + end.len())
        .expect("the fields fit");
    body.extend(std::iter::repeat_n('m', room));
    body.push_str(end);
    body
}
