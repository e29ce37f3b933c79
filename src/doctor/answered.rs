//! What the public address answered to a notification for nobody: our own 401 alone is right, and each other answer says what
//! stands in between. Pure.

use super::Finding;
use super::public::{CHECK, FROM_HERE};
use super::request::Answered;

/// What is wrong with an answer that is not our own 401.
pub(super) fn judge(base: &str, answered: &Answered) -> Option<Finding> {
    let Answered {
        status,
        target,
        server,
        body,
        certificate_ends_at_s: _,
    } = answered;
    let by = server
        .as_deref()
        .map_or_else(String::new, |server| format!(" (`{server}`)"));
    let fail = |told: &str, hint: &str| {
        let told = format!("{FROM_HERE}, {base} {told}");
        Some(Finding::fail(CHECK, told).hint(hint))
    };
    match status {
        401 if body == "unauthorized\n" => None,
        200..=299 => fail(
            &format!(
                "answers {status} to a notification for nobody{by}: something in front of tilld answers by itself, and every notification counts as delivered and is lost"
            ),
            "the proxy has no site of this name, or answers a path by itself: look at its site name and path (Caddy answers 200 for names it does not know)",
        ),
        300..=399 => {
            let target = target.as_deref().unwrap_or("nowhere");
            let hint = redirect_hint(base, target);
            fail(
                &format!(
                    "answers {status} and points to {target}: senders follow no redirect, or lose the body on the way"
                ),
                hint,
            )
        }
        404 if body == "not found\n" => fail(
            "reaches tilld, which has no such path",
            "the proxy takes a part of the path away or adds one: it must pass the path of `listener.public_url` on as it is",
        ),
        404 => fail(
            &format!("answers 404{by}, and not by tilld"),
            "the proxy has no such path, or its site has another name: compare both with `listener.public_url`",
        ),
        401 | 403 => fail(
            &format!("answers {status}{by}, and not by tilld"),
            "the proxy wants a login or keeps strangers out there: the service has to get through without",
        ),
        405 | 413 | 415 => fail(
            &format!("answers {status}{by}, and not by tilld"),
            "the proxy must let POST requests with a JSON body through",
        ),
        503 if body == "try again later\n" => fail(
            "reaches tilld, whose ledger cannot be read",
            "`tilld status` and the log say why",
        ),
        502..=504 => fail(
            &format!("answers {status}{by}: the proxy does not reach tilld"),
            "the proxy's target must be `listener.listen` to the letter: `localhost` may mean `::1`, where tilld does not listen",
        ),
        other => fail(
            &format!("answers {other}{by}, which is not tilld's answer"),
            "look what answers there: its log shows the request",
        ),
    }
}

fn redirect_hint(base: &str, target: &str) -> &'static str {
    let plain = base.strip_prefix("http://");
    if plain.is_some_and(|rest| target.starts_with(&format!("https://{rest}"))) {
        return "`listener.public_url` begins with `http://` where the site is `https://`: set it so";
    }
    if target.ends_with('/') {
        return "the proxy adds a slash to the path: let it pass the path on as it is";
    }
    "set `listener.public_url` to the address the redirect points to, if that is the site's real name"
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn answered(status: u16, body: &str) -> Answered {
        Answered {
            status,
            body: body.to_owned(),
            ..Answered::default()
        }
    }

    #[test]
    fn only_our_own_401_is_right() {
        let own = answered(401, "unauthorized\n");
        assert_eq!(judge("https://shop.example/n", &own), None);
        for (status, body, part) in [
            (200, "", "answers by itself"),
            (204, "", "answers by itself"),
            (401, "Authorization Required", "not by tilld"),
            (404, "not found\n", "reaches tilld"),
            (404, "<html>", "not by tilld"),
            (405, "", "not by tilld"),
            (502, "", "does not reach tilld"),
            (503, "try again later\n", "ledger cannot be read"),
            (500, "", "not tilld's answer"),
        ] {
            let found = judge("https://shop.example/n", &answered(status, body));
            let found = found.unwrap_or_else(|| panic!("{status}"));
            assert!(
                found.told.contains(part) && found.hint.is_some(),
                "{found:?}"
            );
            assert_eq!(found.state, State::Fail);
        }
    }

    #[test]
    fn a_redirect_is_told_with_what_it_says() {
        let hint = |base: &str, target: &str| {
            let pointing = Answered {
                target: Some(target.to_owned()),
                ..answered(301, "")
            };
            judge(base, &pointing)
                .and_then(|found| found.hint)
                .unwrap_or_default()
        };
        assert!(hint("http://shop.example/n", "https://shop.example/n/x").contains("`https://`"));
        assert!(hint("https://shop.example/n", "/n/x/").contains("slash"));
        assert!(
            hint("https://shop.example/n", "https://www.shop.example/n/x").contains("real name")
        );
    }
}
