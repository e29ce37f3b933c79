//! What the calls are in the words of `OpenAPI` 3.1: `tilld control openapi` prints it, `GET /v1/openapi.json` gives it.

use hyper::StatusCode;

use crate::http::{self, Response};

/// The text.
pub(crate) const TEXT: &str = include_str!("openapi.json");

/// It as an answer.
pub(super) fn response() -> Response {
    http::json(StatusCode::OK, TEXT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hyper::Method;
    use serde_json::Value;

    use super::*;
    use crate::answer::failure::Exit;
    use crate::answer::name::Kind;
    use crate::control::route::{Route, route};

    /// Where a call stands in the text. A new one finds no place here until it has one there.
    fn place(route: &Route) -> (Method, String) {
        match route {
            Route::Create => (Method::POST, "/v1/invoices".to_owned()),
            Route::List => (Method::GET, "/v1/invoices".to_owned()),
            Route::Show(name) => (Method::GET, named(name.kind)),
            Route::Wait(name) => (Method::GET, named(name.kind) + "/wait"),
            Route::Poll(name) => (Method::POST, named(name.kind) + "/poll"),
            Route::Events => (Method::GET, "/v1/events".to_owned()),
            Route::Status => (Method::GET, "/v1/status".to_owned()),
            Route::OpenApi => (Method::GET, "/v1/openapi.json".to_owned()),
        }
    }

    /// The path of a name, with its parameter.
    fn named(kind: Kind) -> String {
        let parameter = match kind {
            Kind::Order => "order_id",
            Kind::Id => "invoice_id",
            Kind::Ref => "ref",
        };
        kind.of("").path() + "{" + parameter + "}"
    }

    /// The methods and paths it describes.
    fn described(text: &Value) -> BTreeSet<(String, String)> {
        let paths = text.get("paths").and_then(Value::as_object);
        let of_path = |(path, item): (&String, &Value)| -> Vec<(String, String)> {
            let methods = item.as_object().into_iter().flatten();
            let methods = methods.filter(|(name, _)| *name != "parameters");
            methods
                .map(|(method, _)| (method.to_uppercase(), path.clone()))
                .collect()
        };
        paths.expect("paths").iter().flat_map(of_path).collect()
    }

    #[test]
    fn every_call_is_described_and_nothing_else() {
        let mut calls = vec![
            Route::Create,
            Route::List,
            Route::Show(Kind::Order.of("1042")),
            Route::Show(Kind::Id.of("1042")),
            Route::Show(Kind::Ref.of("1042")),
            Route::Events,
            Route::Status,
            Route::OpenApi,
        ];
        for kind in Kind::ALL {
            calls.extend([Route::Wait(kind.of("1042")), Route::Poll(kind.of("1042"))]);
        }
        let text: Value = serde_json::from_str(TEXT).expect("it is JSON");
        let mut wanted = BTreeSet::new();
        for call in calls {
            let (method, path) = place(&call);
            let asked = Kind::ALL.map(|kind| (named(kind), kind.of("1042").path()));
            let asked = asked
                .iter()
                .fold(path.clone(), |path, (from, to)| path.replace(from, to));
            assert_eq!(route(&method, &asked), Ok(call), "{method} {path}");
            wanted.insert((method.to_string(), path));
        }
        assert_eq!(described(&text), wanted);
    }

    #[test]
    fn problems_have_the_names_of_the_exit_codes_in_their_order() {
        let text: Value = serde_json::from_str(TEXT).expect("it is JSON");
        let names = text.pointer("/components/schemas/Problem/properties/error/enum");
        let names = names.and_then(Value::as_array).expect("names");
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let ends = Exit::ALL.into_iter().filter(|exit| *exit != Exit::Ok);
        assert_eq!(names, ends.map(Exit::name).collect::<Vec<_>>());
    }
}
