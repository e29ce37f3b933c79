//! Shops with very many open invoices. A ledger of one size is made once in a run, which takes from seconds to a minute, and
//! is used by every part that wants that size; at the end [`clear`] removes them. What a part does to it stays: invoices
//! that are notified of are given to one part alone, and the others stay as they are but for their due times.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

use tilld::bench::{Shop, Stocked, settings};

use super::daemon::Home;
use crate::options::Options;

/// Invoices of each shop that notifications can be sent for, beside the others: a tenth of these, and no more than this.
const STOCKED: u32 = 6_000;

/// A shop, by its number of open invoices.
static MADE: Mutex<BTreeMap<u32, &'static Crowd>> = Mutex::new(BTreeMap::new());

/// A shop.
pub(crate) struct Crowd {
    /// Where it is.
    pub(crate) home: Home,
    /// Invoices of which nobody was notified yet.
    stocked: Mutex<Vec<Stocked>>,
}

impl Crowd {
    /// The shop of this size; made when there is none yet.
    pub(crate) fn of(options: &Options, count: u32) -> &'static Self {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(count).or_insert_with(|| {
            let directory = options.directory.join("crowds").join(count.to_string());
            if directory.exists() {
                fs::remove_dir_all(&directory).expect("an earlier run's");
            }
            let home = Home::make(&directory, "");
            Shop::make(&settings(&home.config()), count);
            let stocked = Mutex::new(home.stock(STOCKED.min(count / 10)));
            let shop = Shop::open(&settings(&home.config()));
            shop.rest();
            shop.close();
            Box::leak(Box::new(Self { home, stocked }))
        })
    }

    /// Takes so many invoices of which nobody was notified yet.
    pub(crate) fn take(&self, count: usize) -> Vec<Stocked> {
        let mut stocked = self.stocked.lock().unwrap_or_else(PoisonError::into_inner);
        let left = stocked.len().checked_sub(count).expect("enough for all");
        stocked.split_off(left)
    }

    /// The poller's side of it, in this process. No daemon may run.
    pub(crate) fn shop(&self) -> Shop {
        Shop::open(&settings(&self.home.config()))
    }
}

/// How a figure names a number of invoices.
pub(crate) fn told(count: u32) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// Removes all of them.
pub(crate) fn clear(options: &Options) {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let directory = options.directory.join("crowds");
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("its own directory");
    }
}
