//! The chart of the last day: a bar for each hour, what a notification told below and what asking found on top. An SVG in the
//! page, with a title and a description, and the same figures in a table beside it. Pure.

use maud::{Markup, html};

use super::census::Hour;

/// Size of the drawing, in its own units.
const WIDTH: u64 = 480;
const HEIGHT: u64 = 106;
/// Height of a bar at most; the rest keeps it from the edges.
const TALLEST: u64 = 100;
/// Room of a bar.
const STEP: u64 = 20;

/// The drawing. `name` gives an hour's name from when it began.
pub(super) fn chart(day: &[(i64, Hour)], name: impl Fn(i64) -> String) -> Markup {
    let of = |hour: &Hour| hour.notified + hour.polled;
    let most = day
        .iter()
        .map(|(_, hour)| of(hour))
        .max()
        .unwrap_or(0)
        .max(1);
    let (told, found) = day.iter().fold((0, 0), |(told, found), (_, hour)| {
        (told + hour.notified, found + hour.polled)
    });
    let height = |count: u64| (count * TALLEST).div_ceil(most);
    let bars = (0_u64..).map(|at| at * STEP + 2).zip(day);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby="chart-title chart-desc" {
            title #chart-title { "Changes of the last 24 hours" }
            desc #chart-desc {
                "A bar for each hour by UTC. In all, notifications told " (told) " changes and asking found " (found)
                "; the tallest bar is " (most) "."
            }
            line.base x1="0" y1=(TALLEST + 4) x2=(WIDTH) y2=(TALLEST + 4) {}
            @for (x, (_, hour)) in bars {
                @let (low, high) = (height(hour.notified), height(hour.polled));
                @if low > 0 { rect.told x=(x) y=(TALLEST + 4 - low) width=(STEP - 4) height=(low) {} }
                @if high > 0 { rect.found x=(x) y=((TALLEST + 4).saturating_sub(low + high)) width=(STEP - 4) height=(high) {} }
            }
        }
        // Beside the drawing, where they have the page's own size on a phone too.
        div.hours aria-hidden="true" { @for (at, _) in day.iter().step_by(6) { span { (name(*at)) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_each_other_and_stay_within_the_drawing() {
        let hour = |notified, polled| Hour {
            notified,
            polled,
            ..Hour::default()
        };
        let mut day = vec![(0, Hour::default()); 22];
        day.extend([(1, hour(3, 1)), (2, hour(0, u64::from(u32::MAX)))]);
        let drawn = chart(&day, |at| format!("<{at}>")).into_string();
        assert_eq!(drawn.matches("<rect").count(), 3, "{drawn}");
        assert!(
            drawn.contains(r#"aria-labelledby="chart-title chart-desc""#),
            "{drawn}"
        );
        assert!(drawn.contains("&lt;0&gt;"), "{drawn}");
        assert!(!drawn.contains("<0>"), "{drawn}");
    }

    #[test]
    fn a_day_without_anything_has_no_bar() {
        let drawn = chart(&[(0, Hour::default()); 24], |_| String::new()).into_string();
        assert_eq!(drawn.matches("<rect").count(), 0, "{drawn}");
    }
}
