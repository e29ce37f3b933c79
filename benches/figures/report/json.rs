//! The report for programs: everything that was measured, round by round, with what it was measured on and how.

use serde_json::{Value, json};

use super::{Bar, Figure, Ratio, Report, Spread};
use crate::machine::Machine;
use crate::options::{Effort, Options};

/// The whole report.
pub(crate) fn value(options: &Options, machine: &Machine, report: &Report) -> Value {
    let figures: serde_json::Map<String, Value> = report
        .in_order()
        .into_iter()
        .map(|(key, figure)| (key.clone(), figure_value(figure)))
        .collect();
    let ratios: Vec<Value> = report
        .ratios
        .iter()
        .map(|it| ratio_value(report, it))
        .collect();
    let curves: Vec<Value> = report
        .curves
        .iter()
        .map(|curve| {
            let points = curve.points.iter().map(|point| {
                json!({
                    "offered": point.offered,
                    "acknowledged": point.acknowledged,
                    "p50_us": point.p50_us,
                    "p99_us": point.p99_us,
                    "p999_us": point.p999_us,
                })
            });
            json!({"name": curve.name, "points": points.collect::<Vec<Value>>()})
        })
        .collect();
    json!({
        "machine": machine_value(machine),
        "options": options_value(options),
        "figures": figures,
        "ratios": ratios,
        "curves": curves,
        "notes": report.notes,
    })
}

fn machine_value(machine: &Machine) -> Value {
    let Machine {
        cpu,
        cores,
        memory_mib,
        kernel,
        file_system,
        is_memory,
        rustc,
        tilld,
    } = machine;
    json!({
        "cpu": cpu,
        "cores": cores,
        "memory_mib": memory_mib,
        "kernel": kernel,
        "file_system": file_system,
        "file_system_is_memory": is_memory,
        "rustc": rustc,
        "tilld": tilld,
    })
}

fn options_value(options: &Options) -> Value {
    let effort = match options.effort {
        Effort::Smoke => "smoke",
        Effort::Quick => "quick",
        Effort::Full => "full",
    };
    // Without places: they name the machine's owner more often than the machine.
    json!({
        "effort": effort,
        "only": options.only,
        "peers": options.peers,
        "rows": options.rows,
    })
}

fn figure_value(figure: &Figure) -> Value {
    json!({
        "what": figure.what,
        "unit": figure.unit,
        "values": figure.values,
        "spread": spread_value(Spread::of(&figure.values)),
        "disturbed": figure.disturbed,
        "bar": figure.bar.map(|bar| bar_value(bar, Spread::of(&figure.values))),
    })
}

fn ratio_value(report: &Report, ratio: &Ratio) -> Value {
    let values = report.pairs(ratio);
    let spread = Spread::of(&values);
    let is_same = spread.map(|spread| report.is_noise(ratio, spread.median));
    let (disturbed, of) = report.disturbed_of(ratio);
    json!({
        "what": ratio.what,
        "over": ratio.over,
        "under": ratio.under,
        "values": values,
        "spread": spread_value(spread),
        "is_noise": ratio.is_noise,
        "no_difference_seen": is_same,
        "disturbed": {"measurements": disturbed, "of": of},
        "bar": report.bar_of(ratio).map(|bar| bar_value(bar, spread)),
    })
}

fn spread_value(spread: Option<Spread>) -> Value {
    spread.map_or(
        Value::Null,
        |spread| json!({"median": spread.median, "min": spread.least, "max": spread.most}),
    )
}

/// `met` is null when it was not measured.
fn bar_value(bar: Bar, spread: Option<Spread>) -> Value {
    let met = spread.map(|spread| bar.is_met_by(spread.median));
    match bar {
        Bar::AtLeast(least) => json!({"at_least": least, "met": met}),
        Bar::AtMost(most) => json!({"at_most": most, "met": met}),
    }
}
