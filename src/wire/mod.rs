//! The payment service's JSON, as the contract shows it (`docs/contract.md`). The only place where the service's field names occur.
//! Pure: text in, values out. Lenient where the contract is silent, strict where a guess could move money.

pub mod address;
pub mod create;
pub mod fields;
pub mod invoice;
pub mod json;
pub mod login;
pub mod problem;
pub mod stored;
