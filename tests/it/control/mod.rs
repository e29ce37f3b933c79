//! The control socket as a shop's program meets it: another Unix user with a socket, and nothing else of tilld's.

pub(crate) mod client;
mod events;
mod followers;
mod isolation;
mod opening;
mod requests;
mod restored;
mod slow;
mod sockets;
mod status;
mod untold;
mod waiting;
