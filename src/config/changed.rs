//! What differs between the settings that are in use and those that were read again.

use serde_json::Value;

use super::Settings;
use super::keys::join;

/// The keys whose values differ, dotted as in the file; a list, and a table that is there only in one, as a whole.
pub(crate) fn changed(old: &Settings, new: &Settings) -> Vec<String> {
    let mut keys = Vec::new();
    let tree = |settings: &Settings| serde_json::to_value(settings).expect("plain data");
    walk("", &tree(old), &tree(new), &mut keys);
    keys
}

fn walk(key: &str, old: &Value, new: &Value, keys: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            // All keys of a table are there on both sides, whatever the file says.
            for (name, old) in old {
                let new = new.get(name).unwrap_or(&Value::Null);
                walk(&join(key, name), old, new, keys);
            }
        }
        (old, new) if old == new => {}
        _ => keys.push(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Hook, OnAbandoned};

    #[test]
    fn what_differs_is_told_by_its_key() {
        let old = Settings::default();
        assert_eq!(changed(&old, &old.clone()), Vec::<String>::new());
        let mut new = old.clone();
        new.log_level = crate::telemetry::Level::Debug;
        new.listener.drain_s += 1;
        new.poller.schedule.clear();
        new.hook.push(Hook::default());
        new.on_abandoned = Some(OnAbandoned::default());
        let mut keys = changed(&old, &new);
        keys.sort();
        let wanted = [
            "hook",
            "listener.drain_s",
            "log_level",
            "on_abandoned",
            "poller.schedule",
        ];
        assert_eq!(keys, wanted);
        assert_eq!(changed(&new, &old).len(), wanted.len());
    }
}
