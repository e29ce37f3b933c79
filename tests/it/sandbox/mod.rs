//! The sandbox as a merchant starts it: the real program by its flags, from outside.

mod probed;
