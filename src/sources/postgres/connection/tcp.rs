//! A TCP stream that is read in large pieces while much arrives.
//!
//! Carries out what the pacer decides: a stream that is watched is registered with the runtime, and
//! every arrival wakes the reader; one that is not is looked at when a timer says so, and meanwhile
//! the kernel gathers. Knows no message and no encryption, and so serves under both.
//! **Invariant:** reading and writing may be two tasks; whichever moves the stream leaves neither
//! asleep.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::pace::{Pace, Pacer, WHILE};

/// Room that is made ready for one look at a stream that is not watched.
const LOOK_BYTES: usize = 128 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Tcp {
    link: Link,
    pacer: Pacer,
    /// Who waits for the next look.
    reader: Option<Waker>,
}

#[derive(Debug)]
enum Link {
    /// Entered at the start, and when a look brought little; left when arrivals are many.
    Watched(TcpStream),
    /// The next look is due when the timer ends.
    Unwatched(std::net::TcpStream, Pin<Box<Sleep>>),
    /// Entered if the runtime does not take the stream back; never left.
    Lost,
}

impl Tcp {
    /// Begins with every arrival being watched for.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { link: Link::Watched(stream), pacer: Pacer::new(Instant::now()), reader: None }
    }

    fn unwatch(&mut self) -> io::Result<()> {
        self.link = match std::mem::replace(&mut self.link, Link::Lost) {
            Link::Watched(stream) => Link::Unwatched(stream.into_std()?, Box::pin(sleep(WHILE))),
            other => other,
        };
        Ok(())
    }

    fn watch(&mut self) -> io::Result<()> {
        self.link = match std::mem::replace(&mut self.link, Link::Lost) {
            Link::Unwatched(stream, _) => Link::Watched(TcpStream::from_std(stream)?),
            other => other,
        };
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    /// Looks at the stream, when it is time. `None`: nothing was there.
    fn poll_look(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Option<usize>>> {
        let Link::Unwatched(stream, due) = &mut self.link else { return Poll::Ready(Err(lost())) };
        if due.as_mut().poll(cx).is_pending() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let room = buf.remaining().min(LOOK_BYTES);
        let bytes = match stream.read(buf.initialize_unfilled_to(room)) {
            Ok(bytes) => bytes,
            Err(error) if is_no_answer(&error) => return Poll::Ready(Ok(None)),
            Err(error) => return Poll::Ready(Err(error)),
        };
        buf.advance(bytes);
        // a look that fills all the room has not seen everything: the next one is due at once
        if bytes < room {
            due.as_mut().reset(Instant::now() + WHILE);
        }
        Poll::Ready(Ok(Some(bytes)))
    }
}

fn lost() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}

/// Nothing there, or asked at a bad moment.
fn is_no_answer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Link::Unwatched(..) = this.link {
            match ready!(this.poll_look(cx, buf))? {
                Some(bytes) => {
                    if this.pacer.received(bytes, Instant::now()) == Pace::Watching {
                        this.watch()?;
                    }
                    return Poll::Ready(Ok(()));
                }
                None => {
                    this.pacer.received(0, Instant::now());
                    this.watch()?;
                }
            }
        }
        let Link::Watched(stream) = &mut this.link else { return Poll::Ready(Err(lost())) };
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let bytes = buf.filled().len() - before;
        if this.pacer.received(bytes, Instant::now()) == Pace::Gathering {
            this.unwatch()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Link::Unwatched(stream, _) = &mut this.link {
            match stream.write(buf) {
                // only a stream that is watched tells when there is room
                Err(error) if is_no_answer(&error) => this.watch()?,
                outcome => return Poll::Ready(outcome),
            }
        }
        match &mut this.link {
            Link::Watched(stream) => Pin::new(stream).poll_write(cx, buf),
            Link::Unwatched(..) | Link::Lost => Poll::Ready(Err(lost())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TCP keeps nothing back
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().link {
            Link::Watched(stream) => Pin::new(stream).poll_shutdown(cx),
            Link::Unwatched(stream, _) => Poll::Ready(stream.shutdown(Shutdown::Write)),
            Link::Lost => Poll::Ready(Err(lost())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    async fn pair() -> (Tcp, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        let far = far.expect("accepted").0;
        far.set_nodelay(true).expect("an option of TCP");
        (Tcp::new(near.expect("connected")), far)
    }

    /// Sends small pieces as the server does, until the reader gathers; then a little more.
    #[tokio::test]
    async fn every_byte_arrives_whatever_the_pace() {
        let (near, mut far) = pair().await;
        let (mut reader, mut writer) = tokio::io::split(near);
        let sent: Vec<u8> =
            (0..2_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let expect = sent.clone();
        let sending = tokio::spawn(async move {
            for piece in sent.chunks(70) {
                far.write_all(piece).await.expect("sent");
            }
            let mut answer = [0; 5];
            far.read_exact(&mut answer).await.expect("an answer");
            far.write_all(b"!").await.expect("sent");
            (far, answer)
        });
        let mut seen = vec![0; expect.len()];
        reader.read_exact(&mut seen).await.expect("all of it");
        assert!(seen == expect);
        writer.write_all(b"thank").await.expect("sent");
        // whether it gathers now or watches: the last byte is seen, and the end too
        assert_eq!(reader.read_u8().await.expect("one more"), b'!');
        let (far, answer) = sending.await.expect("sent");
        assert_eq!(&answer, b"thank");
        drop(far);
        assert_eq!(reader.read(&mut [0; 8]).await.expect("the end"), 0);
    }

    #[tokio::test]
    async fn a_stream_that_is_not_watched_is_looked_at_and_watched_again_when_quiet() {
        let (mut near, mut far) = pair().await;
        near.unwatch().expect("left alone");
        near.pacer = gathering();
        far.write_all(&[7; 5000]).await.expect("sent");
        let mut seen = [0; 5000];
        near.read_exact(&mut seen).await.expect("a look");
        let first = tokio::time::timeout(Duration::from_millis(50), near.read_u8()).await;
        assert!(first.is_err() && matches!(near.link, Link::Watched(_)), "{near:?}");
        far.write_all(b"x").await.expect("sent");
        assert_eq!(near.read_u8().await.expect("watched"), b'x');
    }

    #[tokio::test]
    async fn a_writer_without_room_watches_and_wakes_the_reader() {
        let (mut near, mut far) = pair().await;
        near.unwatch().expect("left alone");
        near.pacer = gathering();
        let (mut reader, mut writer) = tokio::io::split(near);
        let reading = tokio::spawn(async move { reader.read_u8().await });
        // more than both sides' buffers hold
        let sending = tokio::spawn(async move { writer.write_all(&vec![1; 32 << 20]).await });
        let mut taken = vec![0; 32 << 20];
        far.read_exact(&mut taken).await.expect("taken");
        sending.await.expect("ended").expect("sent");
        far.write_all(b"r").await.expect("sent");
        assert_eq!(reading.await.expect("ended").expect("read"), b'r');
    }

    fn gathering() -> Pacer {
        let now = Instant::now();
        let mut pacer = Pacer::new(now);
        while pacer.received(100, now) == Pace::Watching {}
        pacer
    }
}
