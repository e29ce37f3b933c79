//! The verification address as a QR code on stderr, for a telephone: only on a terminal that shows it whole and beside
//! the address. Left out, nothing is lost: the address always stands above it as text.
//!
//! A code must be dark on light to be read by every telephone. On a terminal that is coloured this is said by colours;
//! without colours its light parts are drawn and its dark ones left empty, which is right on a dark terminal.

use std::env::var_os;
use std::io::{self, IsTerminal as _};

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use rustix::termios::tcgetwinsize;

use super::super::output::talk;

/// Black on bright white, and back.
const DARK_ON_LIGHT: (&str, &str) = ("\u{1b}[30;107m", "\u{1b}[0m");
/// Lines that stay in sight with the code: address, code, the word what to do, the time left.
const LINES_BESIDE: usize = 4;

/// How a code is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Its dark parts, with colours.
    Coloured,
    /// Its light parts, without.
    Plain,
}

/// Shows the code, if this terminal can.
pub(super) fn show(address: &str) {
    let stderr = io::stderr();
    let Ok(size) = tcgetwinsize(&stderr) else {
        return;
    };
    if !stderr.is_terminal() || is_dumb() || !speaks_utf8(|name| var_os(name)) {
        return;
    }
    let look = match var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => Look::Plain,
        Some(_) | None => Look::Coloured,
    };
    let fits = (usize::from(size.ws_col), usize::from(size.ws_row));
    if let Some(lines) = draw(address, look, fits) {
        talk(&lines);
    }
}

/// True for a terminal that only prints, or one nobody knows.
pub(super) fn is_dumb() -> bool {
    var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// True when the locale's letters are UTF-8. The first of the three that is set counts, as everywhere.
fn speaks_utf8(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    set.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    })
}

/// The code's lines; `None` when it does not fit into so many columns and rows.
fn draw(address: &str, look: Look, (columns, rows): (usize, usize)) -> Option<String> {
    let code = QrCode::with_error_correction_level(address, EcLevel::L).ok()?;
    let mut renderer = code.render::<Dense1x2>();
    renderer.quiet_zone(true).module_dimensions(1, 1);
    if look == Look::Plain {
        renderer
            .dark_color(Dense1x2::Light)
            .light_color(Dense1x2::Dark);
    }
    let drawn = renderer.build();
    let wide = drawn.lines().next()?.chars().count();
    // A terminal that does not know its height scrolls, which does no harm where it knows its width.
    let high_enough = rows == 0 || drawn.lines().count() + LINES_BESIDE <= rows;
    if wide > columns || !high_enough {
        return None;
    }
    let (before, after) = match look {
        Look::Coloured => DARK_ON_LIGHT,
        Look::Plain => ("", ""),
    };
    let lines: Vec<String> = drawn
        .lines()
        .map(|line| format!("{before}{line}{after}"))
        .collect();
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "https://cabinet.example/activate?code=ABCD-EFGH";

    /// The modules a picture shows, row by row, true for dark: what is drawn is dark if `drawn_is_dark`.
    fn modules(picture: &str, drawn_is_dark: bool) -> Vec<Vec<bool>> {
        let mut rows = Vec::new();
        for line in picture.lines() {
            let line = line
                .replace(DARK_ON_LIGHT.0, "")
                .replace(DARK_ON_LIGHT.1, "");
            let half = |upper: bool| {
                let is_drawn =
                    |letter| letter == '█' || letter == if upper { '▀' } else { '▄' };
                line.chars()
                    .map(|letter| is_drawn(letter) == drawn_is_dark)
                    .collect::<Vec<bool>>()
            };
            rows.extend([half(true), half(false)]);
        }
        rows
    }

    #[test]
    fn it_is_dark_on_light_with_its_quiet_zone_in_either_look() {
        let code = QrCode::with_error_correction_level(ADDRESS, EcLevel::L).expect("a code");
        let (wide, inner) = (code.width(), code.to_colors());
        for look in [Look::Coloured, Look::Plain] {
            let picture = draw(ADDRESS, look, (80, 0)).expect("it fits");
            let shown = modules(&picture, look == Look::Coloured);
            for (y, row) in shown.iter().enumerate() {
                assert_eq!(row.len(), wide + 8, "{look:?}");
                for (x, dark) in row.iter().enumerate() {
                    let at = x.checked_sub(4).zip(y.checked_sub(4));
                    let at = at.filter(|(x, y)| *x < wide && *y < wide);
                    let wanted = at.and_then(|(x, y)| inner.get(y * wide + x));
                    let wanted = wanted.is_some_and(|color| *color == qrcode::Color::Dark);
                    // An odd number of rows leaves half a line below the quiet zone.
                    assert!(*dark == wanted || y >= wide + 8, "{look:?} {x} {y}");
                }
            }
            assert_eq!(shown.len().div_ceil(2), (wide + 8).div_ceil(2));
            let colours = picture.contains('\u{1b}');
            assert_eq!(colours, look == Look::Coloured);
        }
    }

    #[test]
    fn it_is_left_out_where_it_would_be_broken_or_push_the_address_out_of_sight() {
        let picture = draw(ADDRESS, Look::Plain, (200, 0)).expect("it fits");
        let wide = picture.lines().next().expect("a line").chars().count();
        let high = picture.lines().count();
        for (size, fits) in [
            ((wide, high + LINES_BESIDE), true),
            ((wide - 1, high + LINES_BESIDE), false),
            ((wide, high + LINES_BESIDE - 1), false),
            ((0, 0), false),
        ] {
            assert_eq!(draw(ADDRESS, Look::Plain, size).is_some(), fits, "{size:?}");
        }
        assert!(draw(&"x".repeat(5_000), Look::Plain, (9_999, 0)).is_none());
    }

    #[test]
    fn the_first_variable_that_is_set_says_which_letters_there_are() {
        for (set, wanted) in [
            (&[("LANG", "de_DE.UTF-8")][..], true),
            (&[("LANG", "C.utf8")], true),
            (&[("LANG", "C")], false),
            (&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "en_US.utf8")], true),
            (&[], false),
        ] {
            let variable = |name: &str| {
                let found = set.iter().find(|(set, _)| *set == name);
                found.map(|(_, value)| value.into())
            };
            assert_eq!(speaks_utf8(variable), wanted, "{set:?}");
        }
    }
}
