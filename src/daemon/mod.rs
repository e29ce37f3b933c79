//! The only place that wires tasks: what runs beside what, who is told to stop, and in which order it ends.

pub mod plain;
