//! Held against the other reading, into a map of values: the same is refused, the same is found, and it is spelt alike.

use proptest::prelude::*;

use super::*;
use crate::wire::json::{self, object};

/// Both readings of a body must agree in everything.
#[track_caller]
fn check(body: &[u8]) {
    let shown = String::from_utf8_lossy(body);
    let (own, other) = (Fields::read(body), object(body));
    let (own, other) = match (own, other) {
        (Ok(own), Ok(other)) => (own, other),
        (own, other) => {
            assert_eq!(own.map(|_| ()), other.map(|_| ()), "{shown}");
            return;
        }
    };
    assert_eq!(
        own.to_json(),
        Value::Object(other.clone()).to_string(),
        "{shown}"
    );
    assert_eq!(own.iter().count(), other.len(), "{shown}");
    for (name, value) in &other {
        let field = own.get(name).expect(name);
        assert_eq!(field.text(), json::text(Some(value)).as_deref(), "{shown}");
        assert_eq!(field.as_str(), value.as_str(), "{shown}");
        assert_eq!(field.to_json(), value.to_string(), "{shown}");
        let given = !value.is_null() && value != "";
        assert_eq!(field.is_given(), given, "{shown}");
    }
    assert!(own.get("not there").is_none());
}

#[test]
fn it_reads_what_a_map_reads() {
    for body in [
        r#"{"b":1,"a":"x","":null,"c":[1,{"z":1,"y":2.50}],"d":{"k":1e3},"e":true,"f":"","g":-0.0}"#,
        r#"{"\u0062":"\u0061\"\\\n","a":"é","c":"\ud83d\ude00"}"#,
        "\u{feff} {\"id\":1} ",
        r#""{\"id\":1,\"text\":\"a\\\"b\"}""#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":1,"a":2,"#,
        r#"{"$serde_json::private::Number":"5","a":{"$serde_json::private::Number":"5"}}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\u{7f}\u{2028}\"}",
        "{}",
        "",
        " \n",
        "null",
        "[]",
        "\"paid\"",
        "{\"a\":1}{}",
        "{\"a\":1} x",
    ] {
        check(body.as_bytes());
    }
    check(b"{\"a\":\"\xff\"}");
    for depth in [120, 126, 127, 128, 500] {
        check(format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
        check(format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).as_bytes());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\"\\\\\n/a]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-d\"\\\\]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_object_is_read_alike(value in value(), whole: bool, cut in 0_usize..60) {
        let text = value.to_string();
        let mut body = format!("{{\"z\":{text},\"a\":{text}}}");
        if !whole {
            body = body.chars().take(cut).collect();
        }
        check(body.as_bytes());
        check(Value::from(body).to_string().as_bytes());
    }
}
