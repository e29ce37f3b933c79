//! placeholder
pub mod notification;
pub mod presentation;
pub mod route;
