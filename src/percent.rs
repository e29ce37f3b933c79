//! What is percent-encoded where a text is one segment of a path, or a value of a query (RFC 3986, 2.3). Pure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
