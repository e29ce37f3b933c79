//! The ledger as a file that lasts for years: looked over, kept short, and honest about a disk that fails (A24 to A28).

mod check;
