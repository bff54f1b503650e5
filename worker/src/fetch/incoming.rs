//! The body of an answer while it arrives. It is decoded to read the page, and kept as it was sent for the archive.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http::response::Parts;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::coding::{self, Decoder};
use crate::archive::Truncated;
use crate::fetch_error::FetchError;

/// The body of an answer while it arrives.
pub(super) struct IncomingBody {
    sent: SentBody,
    /// The decoder of the body; `None` if the body has no coding, or an unknown one.
    decoder: Option<Decoder>,
}

impl IncomingBody {
    /// Separates the body from its head. The coding and the length are removed from the head, because the body is
    /// decoded; an unknown coding stays. With `keep`, the bytes as sent are kept for the archive.
    pub fn split_response(response: Response, keep: Option<RawCopy>) -> (Parts, IncomingBody) {
        let (mut head, body) = http::Response::from(response).into_parts();
        let decoder = match coding::content_codings(&head.headers) {
            Ok(codings) => {
                head.headers.remove(CONTENT_ENCODING);
                Decoder::new(codings)
            }
            Err(_) => None,
        };
        if decoder.is_some() {
            head.headers.remove(CONTENT_LENGTH);
        }
        let sent = SentBody { body, kept: keep };
        (head, IncomingBody { sent, decoder })
    }

    /// Returns the next piece of the body, decoded; `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(next_data(&mut self.sent).await?);
        };
        loop {
            if let Some(piece) = decoder.next_piece()? {
                return Ok(Some(piece));
            }
            match next_data(&mut self.sent).await? {
                Some(sent) => decoder.add(sent),
                None if decoder.is_at_end() => return Ok(None),
                None => decoder.end(),
            }
        }
    }

    /// Reads the next piece only to keep it as it was sent. Returns false at the end, or if nothing more is to be kept.
    pub async fn keep_chunk(&mut self) -> bool {
        if self.sent.kept.as_ref().is_none_or(|kept| kept.is_complete) {
            return false;
        }
        matches!(next_data(&mut self.sent).await, Ok(Some(_)))
    }

    /// The length of the decoded body, if it was declared.
    pub fn declared_bytes(&self) -> Option<usize> {
        if self.decoder.is_some() {
            return None;
        }
        let exact = self.sent.size_hint().exact()?;
        usize::try_from(exact).ok()
    }

    /// The bytes of memory that the copy for the archive takes.
    pub fn kept_bytes(&self) -> usize {
        let kept = self.sent.kept.as_ref();
        kept.map_or(0, |kept| kept.bytes.capacity())
    }

    /// Returns the copy of the body that was kept for the archive.
    pub fn into_kept(mut self) -> Option<RawCopy> {
        self.sent.kept.take()
    }
}

/// Decodes a body that was kept as it was sent. `None` if it does not match the codings in its headers, or is too
/// long.
pub(crate) fn decode(headers: &HeaderMap, sent: Vec<u8>, max_bytes: usize) -> Option<Vec<u8>> {
    let codings = coding::content_codings(headers).ok()?;
    let Some(mut decoder) = Decoder::new(codings) else {
        return (sent.len() <= max_bytes).then_some(sent);
    };
    decoder.add(sent.into());
    decoder.end();
    let mut body = Vec::new();
    while let Some(piece) = decoder.next_piece().ok()? {
        if body.len() + piece.len() > max_bytes {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    Some(body)
}

/// A body as it was sent, for the archive.
#[derive(Debug)]
pub(super) struct RawCopy {
    pub bytes: Vec<u8>,
    pub truncated: Option<Truncated>,
    /// The body is complete, so nothing will be added.
    is_complete: bool,
    most_bytes: usize,
}

impl RawCopy {
    pub fn new(most_bytes: usize) -> RawCopy {
        RawCopy {
            bytes: Vec::new(),
            truncated: None,
            is_complete: false,
            most_bytes,
        }
    }

    fn add(&mut self, chunk: &[u8]) {
        if self.is_complete {
            return;
        }
        let room = self.most_bytes - self.bytes.len();
        let length = self.bytes.len() + chunk.len().min(room);
        if length > self.bytes.capacity() {
            let capacity = (self.bytes.capacity() * 3 / 2).clamp(length, self.most_bytes);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes
            .extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            self.end(Some(Truncated::Length));
        }
    }

    fn end(&mut self, truncated: Option<Truncated>) {
        if !self.is_complete {
            self.is_complete = true;
            self.truncated = truncated;
        }
    }

    /// Returns the body, and the reason if it is truncated. If it is incomplete for no known reason, the time limit was
    /// reached.
    pub fn into_payload(mut self) -> (Vec<u8>, Option<Truncated>) {
        self.end(Some(Truncated::Time));
        self.bytes.shrink_to_fit();
        (self.bytes, self.truncated)
    }
}

/// A body as it is sent, before it is decoded.
struct SentBody {
    body: reqwest::Body,
    kept: Option<RawCopy>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(frame), Some(kept)) = (&polled, &mut self.kept) {
            match frame {
                Some(Ok(frame)) => kept.add(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(_)) => kept.end(Some(Truncated::Disconnect)),
                None => kept.end(None),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The next piece of a body; trailers are skipped.
async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(error),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        member.write_all(text).unwrap();
        member.finish().unwrap()
    }

    fn incoming_body(body: Vec<u8>, most_bytes: usize) -> (Parts, IncomingBody) {
        let response = http::Response::builder()
            .header("content-encoding", "gzip")
            .header("content-length", body.len())
            .body(reqwest::Body::from(body))
            .unwrap();
        IncomingBody::split_response(response.into(), Some(RawCopy::new(most_bytes)))
    }

    async fn read_decoded(body: &mut IncomingBody) -> Result<Vec<u8>, FetchError> {
        let mut all = Vec::new();
        while let Some(chunk) = body.next_chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_body_is_decoded_and_kept_as_it_was_sent() {
        let sent = gzip(b"some text");
        let (head, mut body) = incoming_body(sent.clone(), 1_000);
        assert!(!head.headers.contains_key("content-encoding"));
        assert!(!head.headers.contains_key("content-length"));
        assert_eq!(body.declared_bytes(), None);
        assert_eq!(read_decoded(&mut body).await.unwrap(), b"some text");
        while body.keep_chunk().await {}
        assert_eq!(body.into_kept().unwrap().into_payload(), (sent, None));
    }

    #[tokio::test]
    async fn unread_and_undecodable_bodies_are_kept_as_well() {
        for sent in [gzip(b"some text"), b"not gzip at all".to_vec()] {
            let (_, mut body) = incoming_body(sent.clone(), 1_000);
            let _ = body.next_chunk().await;
            while body.keep_chunk().await {}
            assert_eq!(body.into_kept().unwrap().into_payload(), (sent, None));
        }
    }

    #[tokio::test]
    async fn kept_bodies_are_truncated_at_the_limit() {
        let sent = gzip(b"some text");
        for most_bytes in [0, 5, sent.len() - 1, sent.len()] {
            let (_, mut body) = incoming_body(sent.clone(), most_bytes);
            while body.keep_chunk().await {}
            let (kept, truncated) = body.into_kept().unwrap().into_payload();
            assert_eq!(kept, sent[..most_bytes]);
            let cut = (most_bytes < sent.len()).then_some(Truncated::Length);
            assert_eq!(truncated, cut);
        }
    }

    #[tokio::test]
    async fn a_body_that_was_not_waited_for_is_marked() {
        let (_, body) = incoming_body(gzip(b"some text"), 1_000);
        let (kept, truncated) = body.into_kept().unwrap().into_payload();
        assert_eq!((kept, truncated), (Vec::new(), Some(Truncated::Time)));
    }
}
