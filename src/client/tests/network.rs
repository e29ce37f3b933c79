//! The client on networks that are not as they should be (A32, A33): an address nobody answers at beside one that works,
//! and idle connections the service has closed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Instant;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream as Connection};

use super::stub::{read_request, request, settings};
use super::*;

/// The name with both addresses. It exists nowhere.
const NAME: &str = "both.invalid";
/// Connections opened to fill a queue of two before the port counts as one that cannot be filled.
const MOST_TRIED: usize = 64;

/// A port at which SYNs are dropped, as by a router on the way: its queue is full and nobody takes from it.
struct BlackHole {
    _listener: TcpListener,
    _filling: Vec<TcpStream>,
}

impl BlackHole {
    fn at(address: SocketAddr) -> Option<Self> {
        let socket = TcpSocket::new_v6().ok()?;
        socket.bind(address).ok()?;
        let listener = socket.listen(1).ok()?;
        let brief = Duration::from_millis(500);
        let mut filling = Vec::new();
        while filling.len() < MOST_TRIED {
            match TcpStream::connect_timeout(&address, brief) {
                Ok(stream) => filling.push(stream),
                Err(_silence) => {
                    return Some(Self {
                        _listener: listener,
                        _filling: filling,
                    });
                }
            }
        }
        None
    }
}

/// A client for [`NAME`], which has these addresses.
fn client_of(addresses: &[SocketAddr]) -> Client {
    let port = addresses.first().expect("an address").port();
    let settings = settings(format!("http://{NAME}:{port}"), PATIENT);
    let at_both = |builder: reqwest::ClientBuilder| builder.resolve_to_addrs(NAME, addresses);
    Client::adjusted(&settings, at_both).expect("a client")
}

/// Serves every connection on a port of IPv4 as `KeepAlive` does; gives the port.
async fn serving(answer: String) -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.expect("it reads");
        }
    });
    (port, server)
}

/// Each request costs a moment and never the time-out of a connection, which is 27 s here.
#[tokio::test]
async fn a_black_holed_address_beside_a_working_one_costs_a_moment() {
    let (port, server) = serving(response("200 OK", "", INVOICE)).await;
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Some(_hole) = BlackHole::at(v6) else {
        assert!(
            std::env::var_os("TILLD_NO_SKIP").is_none_or(|value| value != "1"),
            "may not be skipped: no black hole at {v6}"
        );
        return;
    };
    let client = client_of(&[v6, v4]);
    let (token, id) = (Secret::new(TOKEN), InvoiceId::new("inv-1").expect("an id"));
    let mut fastest = PATIENT;
    for _ in 0..3 {
        let start = Instant::now();
        client
            .fetch_invoice((&token, None), &id)
            .await
            .expect("fetched");
        fastest = fastest.min(start.elapsed());
        let start = Instant::now();
        client
            .create_invoice(&token, &request())
            .await
            .expect("created");
        fastest = fastest.min(start.elapsed());
        assert!(start.elapsed() < PATIENT / 3, "{:?}", start.elapsed());
    }
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
    server.abort();

    // It is one: alone it eats the whole time-out, and nothing was sent.
    let alone = Settings {
        connect_timeout: Duration::from_secs(1),
        ..settings(format!("http://[::1]:{port}"), PATIENT)
    };
    let alone = Client::new(&alone).expect("a client");
    let error = alone
        .fetch_invoice((&token, None), &id)
        .await
        .expect_err("silence");
    assert!(matches!(error, Error::NotSent { .. }), "{error:?}");
}

/// Whatever the moment at which the service closes, the answer is there or may be asked for again.
#[tokio::test]
async fn a_fetch_on_a_connection_that_was_closed_meanwhile_does_no_harm() {
    let answer = response("200 OK", "", INVOICE).replace("Connection: close\r\n", "");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = tokio::spawn(async move {
        let serve = async |stream: &mut Connection| {
            read_request(stream).await;
            stream.write_all(answer.as_bytes()).await.expect("it reads");
        };
        let next = async || listener.accept().await.expect("a connection").0;
        // Closed as soon as it is idle.
        serve(&mut next().await).await;
        // Closed as the next request arrives on it, unless the client has opened another by then.
        let mut second = next().await;
        serve(&mut second).await;
        let early = tokio::select! {
            _request = read_request(&mut second) => None,
            third = next() => Some(third),
        };
        drop(second);
        let mut third = match early {
            Some(third) => third,
            None => next().await,
        };
        serve(&mut third).await;
    });
    let client = client(format!("http://{address}"), PATIENT);
    let (token, id) = (Secret::new(TOKEN), InvoiceId::new("inv-1").expect("an id"));
    let (mut fetched, mut lost) = (0, 0);
    while fetched < 3 {
        match client.fetch_invoice((&token, None), &id).await {
            Ok(_report) => fetched += 1,
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                lost += 1;
            }
        }
        assert!(lost <= 2, "each close costs one question at most");
    }
    server.await.expect("every connection was used");
}
