//! Proves to the server who we are, and lets it prove that it knows the password.
//!
//! Stands between the start-up message and the first statement. Knows the messages of the manual's
//! "Start-up" and "SASL Authentication" sections; the arithmetic is `postgres-protocol`'s.
//! **Invariants:** a server that began SCRAM must finish it; whether a secret was sent is told to
//! the caller, who may try another encryption only while none was.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::{Body, Incoming, Outgoing, malformed, unexpected};
use super::server_message::{During, ServerMessage};
use crate::config::Secret;
use crate::error::{Code, Fault};

/// Who connects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credentials<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a Secret,
}

/// What SCRAM can be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// The connection is not encrypted.
    Plain,
    /// Encrypted; the hash of the server's certificate, where one is defined.
    Tls(Option<Vec<u8>>),
}

/// Why start-up failed.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) fault: Fault,
    /// The server said no before it was sent a secret: another encryption may be tried.
    pub(super) may_differ: bool,
}

impl From<Fault> for Rejection {
    fn from(fault: Fault) -> Self {
        Self { fault, may_differ: false }
    }
}

/// How far the exchange is.
enum Progress {
    /// No secret was sent.
    Untouched,
    /// A password or its hash was sent.
    PasswordSent,
    /// Our proof is due or sent, the server's is not.
    Scram(Box<ScramSha256>),
    /// The server proved that it knows the password.
    Proved,
}

/// Answers the server's demands until it is content.
///
/// # Errors
/// It is not, or demands what is not supported, or the connection broke.
pub(super) async fn authenticate<R, W>(
    incoming: &mut Incoming<R>,
    outgoing: &mut Outgoing<W>,
    credentials: Credentials<'_>,
    binding: &Binding,
) -> Result<(), Rejection>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut progress = Progress::Untouched;
    loop {
        let frame = incoming.next().await?;
        match frame.tag {
            b'R' => {
                let mut body = Body(frame.body);
                let demand = body.i32().ok_or_else(|| malformed(frame.tag))?;
                if demand == 0 {
                    return finished(&progress).map_err(Rejection::from);
                }
                let exchange = Exchange { credentials, binding };
                progress = exchange.answer(demand, body, progress, outgoing)?;
                outgoing.flush().await?;
            }
            b'E' => {
                let message =
                    ServerMessage::parse(frame.body).ok_or_else(|| malformed(frame.tag))?;
                let what = format!("connecting as user \"{}\"", credentials.user);
                return Err(Rejection {
                    fault: message.fault(During::Connect, &what),
                    may_differ: matches!(progress, Progress::Untouched),
                });
            }
            b'N' => {}
            other => return Err(unexpected(other, "during authentication").into()),
        }
    }
}

fn finished(progress: &Progress) -> Result<(), Fault> {
    match progress {
        Progress::Untouched | Progress::PasswordSent | Progress::Proved => Ok(()),
        Progress::Scram(_) => Err(Code::SourceAuthentication
            .fault("the server broke off SCRAM without proving that it knows the password")),
    }
}

/// One exchange's constant side.
struct Exchange<'a> {
    credentials: Credentials<'a>,
    binding: &'a Binding,
}

impl Exchange<'_> {
    /// Writes the answer to one demand. The codes are those of the `Authentication…` messages.
    fn answer<W: AsyncWrite + Unpin>(
        &self,
        demand: i32,
        mut body: Body<'_>,
        progress: Progress,
        outgoing: &mut Outgoing<W>,
    ) -> Result<Progress, Fault> {
        let out = outgoing.buffer();
        let broken = |error: std::io::Error| {
            Code::SourceAuthentication
                .fault(format!("authentication of user \"{}\" failed", self.credentials.user))
                .caused_by(&error)
        };
        match (demand, progress) {
            (3, Progress::Untouched) => {
                if *self.binding == Binding::Plain {
                    tracing::warn!(
                        "the server asks for the password in clear text over a connection that \
                         is not encrypted; set database.sslmode"
                    );
                }
                frontend::password_message(self.password()?.as_bytes(), out).map_err(broken)?;
                Ok(Progress::PasswordSent)
            }
            (5, Progress::Untouched) => {
                let salt = body.bytes(4).and_then(|salt| salt.first_chunk::<4>());
                let salt = salt.ok_or_else(|| malformed(b'R'))?;
                let (user, password) = (self.credentials.user, self.password()?);
                let hash = md5_hash(user.as_bytes(), password.as_bytes(), *salt);
                frontend::password_message(hash.as_bytes(), out).map_err(broken)?;
                Ok(Progress::PasswordSent)
            }
            (10, Progress::Untouched) => {
                let (mechanism, binding) = self.mechanism(body)?;
                let scram = ScramSha256::new(self.password()?.as_bytes(), binding);
                frontend::sasl_initial_response(mechanism, scram.message(), out).map_err(broken)?;
                Ok(Progress::Scram(Box::new(scram)))
            }
            (11, Progress::Scram(mut scram)) => {
                scram.update(body.0).map_err(broken)?;
                frontend::sasl_response(scram.message(), out).map_err(broken)?;
                Ok(Progress::Scram(scram))
            }
            (12, Progress::Scram(mut scram)) => {
                scram.finish(body.0).map_err(broken)?;
                Ok(Progress::Proved)
            }
            (2 | 6 | 7 | 9, Progress::Untouched) => Err(Code::SourceAuthentication
                .fault("the server asks for Kerberos, GSSAPI or SSPI, which is not supported")
                .hint("Give the role a password and a scram-sha-256 line in pg_hba.conf.")),
            (other, _) => Err(Code::ProtocolUnexpected
                .fault(format!("unexpected authentication request {other}"))),
        }
    }

    fn password(&self) -> Result<&str, Fault> {
        match self.credentials.password.reveal() {
            "" => Err(Code::SourceAuthentication.fault(format!(
                "the server asks user \"{}\" for a password, and database.password is empty",
                self.credentials.user
            ))),
            password => Ok(password),
        }
    }

    /// Chooses among the offered mechanisms: with channel binding where both sides can.
    fn mechanism(&self, mut offered: Body<'_>) -> Result<(&'static str, ChannelBinding), Fault> {
        let (mut plain, mut plus) = (false, false);
        while let Some(name) = offered.text().filter(|name| !name.is_empty()) {
            plain |= name == SCRAM_SHA_256;
            plus |= name == SCRAM_SHA_256_PLUS;
        }
        match (self.binding, plain, plus) {
            (Binding::Tls(Some(hash)), _, true) => {
                Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash.clone())))
            }
            // We could and the server did not offer it: saying so exposes who removed the offer.
            (Binding::Tls(Some(_)), true, false) => {
                Ok((SCRAM_SHA_256, ChannelBinding::unrequested()))
            }
            (Binding::Tls(None) | Binding::Plain, true, _) => {
                Ok((SCRAM_SHA_256, ChannelBinding::unsupported()))
            }
            (_, false, _) => Err(Code::SourceAuthentication
                .fault("the server offers no mechanism but such as are not supported")),
        }
    }
}
