//! nginx and Caddy as the docs set them up, on ports of a test's own and as nobody in particular.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use crate::docs::example;
use crate::harness::{PATIENCE, Process, World, next_name, wait_until};

/// The address tilld has in the docs.
const TILLD: &str = "127.0.0.1:8480";
/// The shop's host there.
pub(super) const SHOP: &str = "shop.example";

/// A running proxy. Ends with the test.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    _process: Process,
}

/// Why there is none.
pub(super) fn lacks(program: &str) -> Option<String> {
    let found = Command::new(program).arg("-v").output();
    found.is_err().then(|| format!("there is no {program}"))
}

impl Proxy {
    /// nginx with the block of the docs inside the shop's `server`; other names it has no site for, as on a machine with several.
    pub(super) fn nginx(world: &World) -> Self {
        let address = free_port();
        let dir = world.dir().join("nginx");
        fs::create_dir(&dir).expect("a directory");
        let inside = shown("nginx", world);
        let at = dir.display();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\nclient_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\n\
             fastcgi_temp_path {at}/fastcgi;\nuwsgi_temp_path {at}/uwsgi;\nscgi_temp_path {at}/scgi;\n\
             server {{\nlisten {address} default_server;\nreturn 421;\n}}\n\
             server {{\nlisten {address};\nserver_name {SHOP};\n{inside}}}\n}}\n"
        );
        let file = dir.join("nginx.conf");
        fs::write(&file, config).expect("written");
        let mut command = Command::new("nginx");
        command.args(["-e", "stderr"]);
        command.arg("-p").arg(&dir).arg("-c").arg(&file);
        Self::start(&mut command, address, world)
    }

    /// Caddy with the site of the docs, without certificates and its own admin port.
    pub(super) fn caddy(world: &World) -> Self {
        let address = free_port();
        let dir = world.dir().join("caddy");
        fs::create_dir(&dir).expect("a directory");
        let site = shown("caddy", world);
        let port = address.port();
        let site = site.replace(
            &format!("{SHOP} {{"),
            &format!("http://{SHOP}:{port} {{\nbind 127.0.0.1"),
        );
        assert!(
            site.contains("bind"),
            "the site's name was replaced: {site}"
        );
        let file = dir.join("Caddyfile");
        let text = format!("{{\nadmin off\nauto_https off\n}}\n{site}");
        fs::write(&file, text).expect("written");
        let mut command = Command::new("caddy");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file);
        command
            .env("HOME", &dir)
            .env("XDG_DATA_HOME", &dir)
            .env("XDG_CONFIG_HOME", &dir);
        Self::start(&mut command, address, world)
    }

    fn start(command: &mut Command, address: SocketAddr, world: &World) -> Self {
        let mut process =
            Process::spawn(command, &world.log_dir(), &format!("proxy-{}", next_name()));
        wait_until(PATIENCE, "the proxy to listen", || {
            let ended = process.ended();
            assert!(ended.is_none(), "{ended:?}: {}", process.stderr());
            TcpStream::connect(address).is_ok()
        });
        Self {
            address,
            _process: process,
        }
    }
}

/// the docs' block, with this world's address.
fn shown(name: &str, world: &World) -> String {
    let text = example(name);
    assert!(text.contains(TILLD), "{text}");
    text.replace(TILLD, &world.listen().to_string())
}

/// A port that was free a moment ago.
fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}
