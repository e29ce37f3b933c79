//! Which shop the ledger's invoices were opened for, as far as logins tell. Relies on the credentials file, and on a file beside it
//! that a logout leaves. Promises that a logout makes no shop unknown.

use std::path::PathBuf;

use serde_json::Value;

use super::{CredentialsError, Store};
use crate::client::private_file;
use crate::wire::json;

impl Store {
    /// The shop of the stored login at this service, else of the one that was removed last; `None` when none is known by name.
    pub(crate) fn known_shop(&self, origin: &str) -> Result<Option<String>, CredentialsError> {
        // What cannot be read names no shop.
        let stored = self.load().ok().flatten();
        let stored = stored.map(|stored| (stored.shop_name, stored.origin));
        let known = match stored {
            Some(stored) => Some(stored),
            None => self.removed_shop()?,
        };
        let of_service = known.filter(|(shop, service)| service == origin && !shop.is_empty());
        Ok(of_service.map(|(shop, _)| shop))
    }

    fn removed_shop(&self) -> Result<Option<(String, String)>, CredentialsError> {
        let Some(bytes) = private_file::read(&self.last_shop())? else {
            return Ok(None);
        };
        let Ok(object) = json::object(&bytes) else {
            return Ok(None);
        };
        let field = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(field("shop_name").zip(field("service")))
    }

    pub(super) fn last_shop(&self) -> PathBuf {
        self.path.with_file_name("last-shop")
    }
}
