//! The public address, asked from this machine: a notification for nobody is posted there, our own 401 is expected, and then
//! this very refusal in the ledger. A proxy may answer by itself, with a 200 even (Caddy does for a name it has no site for),
//! and then every notification counts as delivered and none arrives.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

use super::answered::judge;
use super::recorded::{self, Trace};
use super::request::post;
use super::{Finding, Patient, certificate};
use crate::clock;
use crate::config;
use crate::entropy;
use crate::invoice::ids::InvoiceRef;
use crate::ledger::{PRESENTATION, Reader, RefusalRow, is_served, own_mark};
use crate::listener::presentation::{Place, Presentations};
use crate::listener::{OWN_MARK, Reason};
use crate::parts;
use crate::telemetry::chain;

pub(super) const CHECK: &str = "public_address";
/// Names of headers that are no secret, beside those that carry one: senders use both ways to write them.
const PLAIN_NAMES: [&str; 1] = [OWN_MARK];
/// Stands in front of every line of this check.
pub(super) const FROM_HERE: &str = "asked from this machine";
/// What helps where another daemon answered.
const ELSEWHERE: &str = "the proxy leads to another daemon than the one of this state directory: compare `listener.listen` with the \
                         proxy's target";

pub(super) async fn look(patient: &Patient<'_>, reader: Option<&Reader>) -> Vec<Finding> {
    let Ok(public) = patient.settings.require_public() else {
        let told = "not asked: `listener.public_url` is not set";
        return vec![Finding::warn(CHECK, told)];
    };
    let Some(reader) = reader.filter(|_| is_served(patient.state_dir)) else {
        let told = "not asked: no daemon runs that could answer";
        let hint = "run this again while `tilld serve` runs";
        return vec![Finding::warn(CHECK, told).hint(hint)];
    };
    let base = public.as_str().trim_end_matches('/');
    let nonce = InvoiceRef::from_entropy(entropy::bytes());
    let nobodys = InvoiceRef::from_entropy(entropy::bytes());
    let url = format!("{base}/{}", nobodys.as_str());
    let body = format!(r#"{{"id":"doctor-{}","status":"new"}}"#, nonce.as_str());
    let hash = sha256_hex(body.as_bytes());
    let sent = Sent {
        reference: nobodys.as_str().to_owned(),
        headers: marked_headers(patient, nonce.as_str(), &nobodys),
    };
    let since_ms = clock::wall_ms();
    let answered = match post(&url, &sent.headers, body).await {
        Ok(answered) => answered,
        Err(error) => {
            let told = format!("{FROM_HERE}, {base} gives no answer: {}", chain(&error));
            return vec![Finding::fail(CHECK, told).hint(
                "look at the name, the proxy and its certificate; where only this machine cannot reach its own public address (a \
                 router without hairpin NAT), ask from another one",
            )];
        }
    };
    let mut findings: Vec<Finding> = certificate::shown(base, answered.certificate_ends_at_s)
        .into_iter()
        .collect();
    let found = if let Some(wrong) = judge(base, &answered) {
        wrong
    } else {
        let trace = recorded::find(patient, reader, since_ms, &hash).await;
        let needed = if patient.settings.listener.presentations == config::Presentations::Auto {
            Needed::Last(last_headers(reader).await)
        } else {
            Needed::All
        };
        judge_trace(base, trace, &sent, &needed)
    };
    findings.push(found);
    findings
}

/// The headers without which no notification is believed.
enum Needed {
    /// Each of a pinned list.
    All,
    /// Of the usual places the service uses one: where the last authentic notification had its token, if one came.
    Last(Vec<String>),
}

impl Needed {
    fn has(&self, header: &str) -> bool {
        match self {
            Self::All => true,
            Self::Last(last) => last.iter().any(|name| name == header),
        }
    }
}

/// The headers that carried the token of the last authentic notification; none when it stood in the address or the body.
async fn last_headers(reader: &Reader) -> Vec<String> {
    let place = reader.fact(&PRESENTATION).await.ok().flatten();
    let place = place.and_then(|text| Place::parse(&text).ok());
    let names = place.iter().flat_map(Place::headers);
    names.map(|name| name.as_str().to_owned()).collect()
}

/// What was posted.
struct Sent {
    /// The last part of the path.
    reference: String,
    /// The headers that are looked for.
    headers: Vec<(String, String)>,
}

/// The headers that may carry a notify token, as the config names them, with a value that is none.
fn marked_headers(
    patient: &Patient<'_>,
    nonce: &str,
    nobodys: &InvoiceRef,
) -> Vec<(String, String)> {
    let public = patient.settings.require_public();
    let public = public.as_ref().map_or("", |public| public.as_str());
    let places =
        parts::listener_settings(patient.settings, public).map(|heard| heard.presentations);
    let names = places.iter().flat_map(Presentations::header_names);
    let mut names: Vec<String> = names.collect();
    names.extend(PLAIN_NAMES.map(str::to_owned));
    names.sort();
    names.dedup();
    let value = format!("tilld-doctor-{nonce}");
    let own = own_mark(patient.state_dir, nobodys);
    let value = |name: &str| {
        own.clone()
            .filter(|_| name == OWN_MARK)
            .unwrap_or_else(|| value.clone())
    };
    names
        .into_iter()
        .map(|name| (name.clone(), value(&name)))
        .collect()
}

/// What is to be said of where it went, when the answer was right.
fn judge_trace(base: &str, trace: Trace, sent: &Sent, needed: &Needed) -> Finding {
    let right = format!("{FROM_HERE}, {base} answers as tilld does");
    let again = "mend that, and run this again: whether the proxy leads here is not known before";
    match trace {
        Trace::Recorded(row) => match way(base, &row, &sent.reference) {
            Some(wrong) => wrong,
            None => arrived(base, &sent.headers, &row.header_names, needed),
        },
        Trace::Unstored(advice) => Finding::fail(
            CHECK,
            format!("{right}, but this daemon stores nothing just now, and so no refusal: {advice}"),
        )
        .hint(again),
        Trace::Unread(error) => Finding::fail(
            CHECK,
            format!("{right}, but the refusal could not be looked for in this ledger: {}", chain(&error)),
        )
        .hint(again),
        Trace::Displaced => Finding::warn(
            CHECK,
            format!("{right}, but more requests were refused meanwhile than this ledger keeps: whether this one was among them is not known"),
        )
        .hint("run this again when there are fewer; `tilld refusal list` shows where they come from"),
        Trace::Absent => Finding::fail(
            CHECK,
            format!("{right}, but this ledger has no such refusal, and its daemon stores what comes: another tilld answers there"),
        )
        .hint(ELSEWHERE),
        Trace::Untold => Finding::fail(
            CHECK,
            format!("{right}, but this ledger has no such refusal: another tilld answers there, or this one stores nothing, which its control socket did not tell"),
        )
        .hint(ELSEWHERE),
    }
}

/// What became of the path on the way.
fn way(base: &str, row: &RefusalRow, reference: &str) -> Option<Finding> {
    let fail = |told: &str, hint: &str| {
        let told = format!("{FROM_HERE}, {base} leads to this daemon, but {told}");
        Some(Finding::fail(CHECK, told).hint(hint))
    };
    let hash = sha256_hex(reference.as_bytes());
    if row.reason == Reason::InvoiceUnknown.as_str() {
        return fail(
            "the last part of the path is lost on the way, which says whose notification it is",
            "the proxy must pass the whole path on: look for a target with a path of its own, or a rewrite",
        );
    }
    if row.reason == Reason::RefUnknown.as_str() && !hash.starts_with(&row.ref_hash) {
        return fail(
            "the last part of the path is another when it arrives",
            "the proxy must pass the path on as it is, capitals and all",
        );
    }
    None
}

/// It arrived; whether all its headers did.
fn arrived(base: &str, sent: &[(String, String)], names: &str, needed: &Needed) -> Finding {
    let kept: Vec<&str> = names.split(',').collect();
    let is_bounded = kept.iter().any(|name| name.starts_with('+'));
    let missing: Vec<&str> = sent
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !kept.contains(name))
        .collect();
    if missing.is_empty() || is_bounded {
        return Finding::ok(
            CHECK,
            format!(
                "{FROM_HERE}, {base} leads to this daemon, and every header that may carry a notify token arrives"
            ),
        );
    }
    let told = format!(
        "{FROM_HERE}, {base} leads to this daemon, but these headers are lost on the way: {}",
        missing.join(", ")
    );
    let finding = if missing.iter().any(|name| needed.has(name)) {
        Finding::fail(CHECK, told)
    } else {
        Finding::warn(CHECK, told)
    };
    finding.hint(
        "the service may put the notify token into one of them: let the proxy pass all headers on (nginx drops names with an \
         underscore unless `underscores_in_headers on` is set)",
    )
}

fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a `String` cannot fail.
        write!(hex, "{byte:02x}").unwrap_or_default();
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn headers_that_do_not_arrive_are_named() {
        let sent = [
            ("authorization".to_owned(), String::new()),
            ("x-token".to_owned(), String::new()),
        ];
        assert_eq!(
            arrived("b", &sent, "authorization,host,x-token", &Needed::All).state,
            State::Ok
        );
        let lost = arrived("b", &sent, "host,x-token", &Needed::All);
        assert_eq!(lost.state, State::Fail);
        assert_eq!(
            arrived("b", &sent, "host,x-token", &Needed::Last(Vec::new())).state,
            State::Warn
        );
        assert!(
            lost.told.ends_with("lost on the way: authorization"),
            "{lost:?}"
        );
        for (last, state) in [("authorization", State::Fail), ("x-token", State::Warn)] {
            let needed = Needed::Last(vec![last.to_owned()]);
            assert_eq!(arrived("b", &sent, "host,x-token", &needed).state, state);
        }
        assert_eq!(
            arrived("b", &sent, "host,+9", &Needed::All).state,
            State::Ok,
            "more came than is kept"
        );
    }
}
