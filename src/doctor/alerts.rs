//! What `tilld status` lists, as findings: both commands read one report. Pure.
//!
//! Promises to leave out only what another check looks at by itself.

use super::{Finding, Patient};
use crate::invoice::attention::Severity;
use crate::status::{Need, Reason};

const CHECK: &str = "alerts";

pub(super) fn look(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(report) = patient.report else {
        return Vec::new();
    };
    let others = report.needs.iter().filter(|need| !is_checked(need));
    let findings: Vec<Finding> = others.map(finding).collect();
    if findings.is_empty() {
        return vec![Finding::ok(CHECK, "`tilld status` lists no other alert")];
    }
    findings
}

/// A check of its own says it.
const fn is_checked(need: &Need) -> bool {
    matches!(
        need.reason,
        Reason::Certificate
            | Reason::Daemon
            | Reason::DiskLow
            | Reason::InodesLow
            | Reason::ReadOnly
    )
}

fn finding(need: &Need) -> Finding {
    let told = format!("{}: {}", need.reason, need.told);
    let found = match need.severity {
        Severity::Critical => Finding::fail(CHECK, told),
        Severity::Warning => Finding::warn(CHECK, told),
    };
    found.hint(need.advice.join("; "))
}
