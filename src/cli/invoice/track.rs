//! `tilld invoice track`: has an invoice watched over that the shop's own code opened. Asks nobody and needs no login; the
//! daemon asks about it at its next look.
//!
//! The notify token comes from a file or from standard input and never stands in an argument. The ref that every invoice
//! has plays no part here: the shop's code named the bare notification address before there was one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, print_json, talk};
use super::super::which::{parse_id, parse_order};
use super::super::{ledger, owner};
use super::create::parse_amount;
use super::view;
use crate::answer::invoice;
use crate::clock::wall_ms;
use crate::entropy;
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::notify_token::{NotifyToken, SHORTEST_TOKEN};
use crate::invoice::opening::Opening;
use crate::invoice::sum::Sum;
use crate::ledger::{InvoiceRow, Ledger, Objection, Operated, Tracking, is_served};
use crate::parts;
use crate::regular_file::{self, Unfit};

/// Longest notify token, in bytes: a notification must fit it into a line of its head.
const LONGEST_TOKEN: usize = 4096;

/// Flags of `invoice track`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shop's own id of the order, as it was sent with the create
    #[arg(value_name = "ORDER", value_parser = parse_order)]
    order: OrderId,
    /// The service's id of the invoice
    #[arg(long, value_name = "ID", value_parser = parse_id, allow_hyphen_values = true)]
    id: InvoiceId,
    /// The amount that was asked for, as a plain decimal
    #[arg(long, value_parser = parse_amount)]
    amount: Amount,
    /// The currency that was asked for, for example RUB
    #[arg(long)]
    currency: String,
    /// The file that holds the notify token sent with the create; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

/// The answer in the words of `--json`: the invoice, and where the service must send its notifications.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    invoice: invoice::Shown<'a>,
    notification_url: &'a str,
}

/// Runs `invoice track`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    let agreed =
        Sum::new(args.amount, &args.currency).map_err(|error| Failure::new(Exit::Usage, error))?;
    let settings = context.settings()?;
    let public_url = settings.require_public()?.to_string();
    let address = parts::opening_settings(settings, &public_url).public_url;
    let token = read_token(&args.token_file)?;
    let ledger = ledger::open(&context)?;
    let tracked = track(&ledger, args.order, args.id, agreed, &token).await;
    ledger.close(ledger::CLOSE_WITHIN).await;
    let row = tracked?;
    if context.output.json() {
        print_json(&Shown {
            invoice: invoice::json(&row),
            notification_url: &address,
        })?;
    } else {
        let lines = [("notificationUrl", address)];
        context.output.unwrapped().pairs(&lines)?;
        context.output.line("")?;
        view::print(context.output, &row, wall_ms())?;
    }
    if !is_served(&context.state_dir()?) {
        talk(
            "no `tilld serve` runs on this state directory: until one does, nobody hears of the payment",
        );
    }
    Ok(Exit::Ok)
}

async fn track(
    ledger: &Ledger,
    order_id: OrderId,
    invoice_id: InvoiceId,
    agreed: Sum,
    token: &NotifyToken,
) -> Result<InvoiceRow, Failure> {
    let writer = ledger.writer();
    let reference = InvoiceRef::from_entropy(entropy::bytes());
    let wish = Tracking {
        order_id,
        invoice_id,
        agreed,
        sealed: writer.seal(token, &reference),
        reference,
        now_ms: wall_ms(),
    };
    match writer.track(wish).await? {
        Operated::Done(row, _) => Ok(*row),
        Operated::Already(row) => {
            let known = ledger.reader().notify_token(row.key).await?;
            if known.is_some_and(|known| known.matches(token.secret().expose().as_bytes())) {
                talk(&already(&row));
                return Ok(*row);
            }
            let error = format!("{} with another notify token", already(&row));
            Err(Failure::new(Exit::Error, error).hint(
                "the token it was opened with counts; notifications that carry another one are refused",
            ))
        }
        Operated::Refused(row, objection) => Err(refused(&row, objection)),
    }
}

fn already(row: &InvoiceRow) -> String {
    let how = if row.opening == Opening::Tracked {
        "tracked"
    } else {
        "in the ledger"
    };
    let (id, order) = (row.invoice_id.as_deref(), escape(&row.order_id));
    let id = escape(id.unwrap_or_default());
    format!("invoice {id} of order {order} is {how} already")
}

fn refused(row: &InvoiceRow, objection: Objection) -> Failure {
    let id = row.invoice_id.as_deref().unwrap_or_default();
    let (flag, order) = (view::name(row).flag(), &row.order_id);
    if objection == Objection::OtherSum {
        let sum = view::sum(&row.amount_agreed, &row.currency_agreed);
        let error = format!("invoice `{id}` of order `{order}` is in the ledger with {sum}");
        return Failure::new(Exit::Error, error).hint(format!(
            "what the service reports counts: `{}` takes it as agreed",
            invoice::accepting(row)
        ));
    }
    let error = format!("invoice `{id}` belongs to order `{order}` in the ledger");
    Failure::new(Exit::Error, error).hint(format!("`tilld invoice show {flag}` shows it"))
}

/// Reads the notify token: the file's text without its line end.
fn read_token(path: &Path) -> Result<NotifyToken, Failure> {
    let doing = || format!("could not read the notify token from `{}`", path.display());
    let read = if path == Path::new("-") {
        read_some(io::stdin().lock())
    } else {
        // What is longer than any token is named by its length.
        regular_file::open(path)
            .map_err(Unfit::into_io)
            .and_then(|(file, _)| read_some(file))
    };
    let text = read.map_err(|error| {
        Failure::new(Exit::Error, error)
            .context(doing())
            .hint("name a file that this user can read, or `-` for standard input")
    })?;
    token_of(text).map_err(|why| {
        Failure::new(Exit::Usage, why)
            .context(doing())
            .hint("it is the `notificationToken` that was sent with the create, alone in the file")
    })
}

fn read_some(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(LONGEST_TOKEN + 3);
    // With room for a line end, and one byte that shows that there is more.
    let most = u64::try_from(LONGEST_TOKEN).unwrap_or(u64::MAX) + 3;
    from.take(most).read_to_end(&mut text)?;
    Ok(text)
}

fn token_of(text: Vec<u8>) -> Result<NotifyToken, String> {
    // What is no text is named without being shown.
    let mut text = String::from_utf8(text).map_err(|_bytes| "it is not UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("it is more than one line, or holds control characters".to_owned());
    }
    // Blanks around a value are no part of it on the wire (RFC 9110 5.5), so no header could ever carry such a token.
    if text.trim().len() != text.len() {
        return Err("it begins or ends with a blank".to_owned());
    }
    if text.len() > LONGEST_TOKEN {
        return Err(format!("it is longer than {LONGEST_TOKEN} bytes"));
    }
    NotifyToken::from_stored(text)
        .ok_or_else(|| format!("a notify token has at least {SHORTEST_TOKEN} characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_of_32_to_4096_bytes() {
        let token = "0123456789abcdef0123456789abcdef";
        for text in [
            token.to_owned(),
            format!("{token}\n"),
            format!("{token}\r\n"),
        ] {
            let read = token_of(text.into_bytes()).expect("a token");
            assert!(read.matches(token.as_bytes()));
        }
        for text in [
            String::new(),
            "\n".to_owned(),
            "too short\n".to_owned(),
            format!("{token}\n\n"),
            format!("{token}\n{token}\n"),
            format!("{token}\0"),
            format!(" {token}\n"),
            format!("{token} \n"),
            "x".repeat(LONGEST_TOKEN + 1),
        ] {
            let why = token_of(text.clone().into_bytes()).expect_err("refused");
            assert!(!why.contains(token), "{why}");
        }
        assert!(token_of(vec![0xff; 40]).is_err());
        assert!(token_of(vec![b'x'; LONGEST_TOKEN]).is_ok());
    }
}
