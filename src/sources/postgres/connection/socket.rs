//! The byte stream to the server: TCP or a Unix socket, encrypted or not.
//!
//! Resolves, connects, and encrypts by one attempt's rule. Knows nothing of messages beyond the
//! request for encryption.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::auth::Binding;
use super::tcp::Tcp;
use super::tls::{self, Encryption};
use crate::error::{Code, Fault};
use crate::sources::postgres::ConnectionSettings;

/// A connected byte stream.
#[derive(Debug)]
pub enum Socket {
    /// TCP in the clear.
    Tcp(Tcp),
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP under TLS.
    Tls(Box<TlsStream<Tcp>>),
}

/// Why a stream could not be had.
pub(super) struct SocketFailure {
    pub(super) fault: Fault,
    /// Encryption was at fault: another encryption may be tried.
    pub(super) may_differ: bool,
}

impl From<Fault> for SocketFailure {
    fn from(fault: Fault) -> Self {
        Self { fault, may_differ: false }
    }
}

impl Socket {
    /// Connects and encrypts.
    pub(super) async fn connect(
        settings: &ConnectionSettings,
        encryption: Encryption,
        config: Option<Arc<ClientConfig>>,
    ) -> Result<Self, SocketFailure> {
        if let Some(path) = unix_path(settings) {
            let stream = UnixStream::connect(&path).await.map_err(|error| {
                Code::SourceUnreachable.fault(format!("cannot connect to {path}")).caused_by(&error)
            })?;
            return Ok(Self::Unix(stream));
        }
        let mut stream = connect_tcp(settings).await?;
        if encryption == Encryption::None {
            return Ok(Self::Tcp(stream));
        }
        let failed = |what: &str, error: &io::Error| {
            // What TLS itself refuses stays refused; a broken connection may heal.
            let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            let code = if tls.is_some() { Code::SourceTls } else { Code::SourceUnreachable };
            let fault = code.fault(format!("{what} with {}", endpoint(settings)));
            SocketFailure { fault: fault.caused_by(error), may_differ: true }
        };
        let offered = tls::request(&mut stream)
            .await
            .map_err(|error| failed("cannot agree on encryption", &error))?;
        match (offered, config) {
            (true, Some(config)) => {
                let name = tls::server_name(&settings.host)?;
                let stream = TlsConnector::from(config)
                    .connect(name, stream)
                    .await
                    .map_err(|error| failed("the TLS handshake failed", &error))?;
                Ok(Self::Tls(Box::new(stream)))
            }
            (false, _) if encryption == Encryption::IfOffered => Ok(Self::Tcp(stream)),
            _ => Err(Code::SourceTls
                .fault(format!("the server at {} does not offer encryption", endpoint(settings)))
                .into()),
        }
    }

    /// What SCRAM can be bound to on this stream.
    pub(super) fn binding(&self) -> Binding {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Binding::Plain,
            Self::Tls(stream) => {
                Binding::Tls(tls::end_point_digest(stream.get_ref().1.peer_certificates()))
            }
        }
    }
}

/// How faults name the server.
pub(super) fn endpoint(settings: &ConnectionSettings) -> String {
    unix_path(settings).unwrap_or_else(|| format!("{}:{}", settings.host, settings.port))
}

/// Whether the server is reached over a Unix socket.
pub(super) fn is_local(settings: &ConnectionSettings) -> bool {
    unix_path(settings).is_some()
}

/// libpq takes a host that begins with a slash for the directory of a Unix socket, and never
/// encrypts on one.
fn unix_path(settings: &ConnectionSettings) -> Option<String> {
    settings
        .host
        .starts_with('/')
        .then(|| format!("{}/.s.PGSQL.{}", settings.host.trim_end_matches('/'), settings.port))
}

/// Tries the addresses of the host in their order.
async fn connect_tcp(settings: &ConnectionSettings) -> Result<Tcp, Fault> {
    let unreachable = |what: String, error: &io::Error| {
        Code::SourceUnreachable.fault(format!("{what} {}", endpoint(settings))).caused_by(error)
    };
    let addresses = tokio::net::lookup_host((settings.host.as_str(), settings.port))
        .await
        .map_err(|error| unreachable("cannot find the host of".to_owned(), &error))?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let attempt = async {
            let socket = socket?;
            socket.set_keepalive(settings.tcp_keepalive)?;
            socket.set_nodelay(true)?;
            socket.connect(address).await
        };
        match attempt.await {
            Ok(stream) => return Ok(Tcp::new(stream)),
            Err(error) => last = error,
        }
    }
    Err(unreachable("cannot connect to".to_owned(), &last))
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
