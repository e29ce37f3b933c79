//! `tilld serve`: judges everything a start depends on that can be judged without starting.

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::print_json;

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Look at the settings and the hooks' programs, say what is wrong, and exit
    #[arg(long, required = true)]
    check: bool,
    /// Listen on IP:PORT, whatever the settings say
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
}

/// Variable of one-shot commands that the daemon refuses: whoever may look at the daemon would read the token.
const TOKEN_VARIABLE: &str = "SERVICE_TOKEN";

/// Runs `serve`.
#[expect(
    clippy::unused_async,
    reason = "commands are awaited; this one has nothing to wait for yet"
)]
pub(super) async fn run(args: Args, mut context: Context) -> Result<Exit, Failure> {
    context.set_listen(args.listen);
    check(&context)
}

/// What a start would refuse.
fn check(context: &Context) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let service = settings.require_service()?;
    let public = settings.require_public()?;
    for hook in &settings.hook {
        hook.check()?;
    }
    if std::env::var_os(TOKEN_VARIABLE).is_some() {
        let failure = Failure::new(Exit::Config, "`serve` takes no token from `SERVICE_TOKEN`");
        return Err(failure.hint("unset it and run `tilld login`, which keeps the token in a file"));
    }
    let state_dir = context.state_dir()?;
    let file = context.config_file()?;
    let hooks: Vec<&str> = settings
        .hook
        .iter()
        .map(|hook| hook.name.as_str())
        .collect();
    if context.output.json() {
        print_json(&serde_json::json!({
            "config": file.map(|file| file.to_string_lossy()),
            "state_dir": state_dir.to_string_lossy(),
            "service_url": service.as_str(),
            "public_url": public.as_str(),
            "listen": settings.listener.listen,
            "hooks": hooks,
        }))?;
    } else {
        let file = file.map_or("no file".to_owned(), |file| file.display().to_string());
        context.output.pairs(&[
            ("config", file),
            ("state directory", state_dir.display().to_string()),
            ("service", service.to_string()),
            ("public address", public.to_string()),
            ("listens on", settings.listener.listen.to_string()),
            ("hooks", hooks.join(", ")),
        ])?;
    }
    Ok(Exit::Ok)
}
