//! The requests of `object_store` over `ureq`. Bodies are read whole, since they are blocks of a few MiB.

use std::io::{self, Read};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::DateTime;
use http_body_util::BodyExt;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService};
use object_store::{ClientConfigKey, ClientOptions, HeaderMap};
use ureq::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use ureq::{Agent, Body};

use super::failure::{Told, said};
use super::options::RemoteOptions;
use super::retry::Heard;

/// The longest message of an error that is read.
const LONGEST_MESSAGE: u64 = 64 << 10;

/// The longest body that is sent without asking the server whether it accepts it.
const LONGEST_UNASKED: usize = 64 << 10;

/// A server that sends less is one that does not answer.
const LEAST_BYTES_PER_S: f64 = 1024.0;

/// Where cloud machines find their credentials. They answer within the machine, or not at all.
const METADATA_HOSTS: [&str; 5] = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "metadata", "metadata.google.internal"];
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);

/// Errors of S3 that pass although their status is 400, or 403.
const PASSING: [&str; 4] = ["RequestTimeout:", "Throttling", "RequestThrottled", "RequestLimitExceeded"];

/// In which region a bucket of S3 is.
const REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirects {
    Followed,
    /// Returned as they are, since a signature is only valid for one address.
    #[cfg(any(feature = "s3", feature = "gs", feature = "az"))]
    Returned,
}

pub(super) struct Connector {
    timeout: Duration,
    n_connections: usize,
    redirects: Redirects,
    /// `user:password`
    user: Option<String>,
    /// The address for credentials, if it is not one of [`METADATA_HOSTS`].
    metadata: Option<String>,
    heard: Heard,
}

/// `object_store` requires it.
impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(super) fn new(options: &RemoteOptions, redirects: Redirects, user: Option<String>, heard: Heard) -> Self {
        let metadata = options.settings.iter().find(|(name, _)| name.eq_ignore_ascii_case("aws_metadata_endpoint"));
        let metadata = metadata.and_then(|(_, url)| Some(url::Url::parse(url).ok()?.authority().to_owned()));
        Self { timeout: options.timeout, n_connections: options.parallel, redirects, user, metadata, heard }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|word| word == "true");
        let timeout = Some(self.timeout);
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(!allows_http)
            .max_redirects(if self.redirects == Redirects::Followed { 10 } else { 0 })
            .max_redirects_will_error(self.redirects == Redirects::Followed)
            .user_agent(concat!("brisk-table/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(self.n_connections)
            .max_idle_connections_per_host(self.n_connections)
            .timeout_resolve(timeout)
            .timeout_connect(timeout)
            .timeout_recv_response(timeout)
            .timeout_per_read(timeout)
            .timeout_per_write(timeout)
            .build()
            .new_agent();
        let authorization = self.user.as_ref().map(|user| format!("Basic {}", BASE64_STANDARD.encode(user)));
        let authorization = authorization.and_then(|value| HeaderValue::try_from(value).ok());
        let (metadata, heard) = (self.metadata.clone(), self.heard.clone());
        Ok(HttpClient::new(Transport { agent, timeout: self.timeout, authorization, metadata, heard }))
    }
}

#[derive(Clone)]
struct Transport {
    agent: Agent,
    timeout: Duration,
    authorization: Option<HeaderValue>,
    metadata: Option<String>,
    heard: Heard,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transport")
    }
}

impl HttpService for Transport {
    // What `async_trait` makes of the trait's `async fn`.
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let transport = self.clone();
            let exchanged = tokio::task::spawn_blocking(move || transport.exchange(Request::from_parts(parts, &body[..])));
            let exchanged = exchanged.await.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            // Not of a kind that `object_store` repeats.
            exchanged.map_err(|told| HttpError::new(HttpErrorKind::Unknown, told))
        })
    }
}

impl Transport {
    fn exchange(&self, mut request: Request<&[u8]>) -> Result<HttpResponse, Told> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let range = header_text(request.headers(), header::RANGE).and_then(Range::requested);
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let is_metadata =
            METADATA_HOSTS.contains(&host.as_str()) || self.metadata.is_some() && authority == self.metadata.as_deref();
        let sent = match request.method() {
            &Method::GET | &Method::HEAD | &Method::DELETE => self.run(request.map(|_| ()), is_metadata),
            _ => {
                if request.body().len() > LONGEST_UNASKED {
                    // A server that refuses a long body says so before it is sent, rather than close the connection.
                    request.headers_mut().insert(header::EXPECT, HeaderValue::from_static("100-continue"));
                }
                self.run(request, is_metadata)
            }
        };
        let response = match sent {
            Ok(response) if is_metadata && !response.status().is_success() => return Err(Told::NoCredentials { host }),
            Ok(response) => response,
            Err(_) if is_metadata => return Err(Told::NoCredentials { host }),
            Err(error) => return Err(self.told(&error)),
        };
        self.heard.note();
        let (mut parts, body) = response.into_parts();
        let body = match (range, parts.status) {
            (Some(_), StatusCode::OK) if !parts.headers.contains_key(header::CONTENT_RANGE) => {
                return Err(whole_instead(&parts.headers));
            }
            (_, StatusCode::RANGE_NOT_SATISFIABLE) => return Err(Told::BeyondEnd),
            (_, status) if is_transient(status) => return Err(transient(status, &parts.headers, body)),
            // Some servers send a range with the status of a whole object, which `object_store` would refuse.
            (Some(asked), StatusCode::PARTIAL_CONTENT | StatusCode::OK) => {
                parts.status = StatusCode::PARTIAL_CONTENT;
                let body = self.range(body, asked.n_bytes())?;
                asked.check(header_text(&parts.headers, header::CONTENT_RANGE), body.len() as u64)?;
                body
            }
            (Some(_), status) if status.is_success() => {
                return Err(Told::Final(format!("the server answered {status}, expected some bytes of a file")));
            }
            (_, status) if status.is_success() => self.whole(body, u64::MAX)?,
            (_, status) => {
                let body = self.whole(body, LONGEST_MESSAGE)?;
                let message = said(&String::from_utf8_lossy(&body));
                if PASSING.iter().any(|code| message.starts_with(code)) {
                    let what = format!("the server failed, {status}: {message}");
                    return Err(Told::Transient { what, after: retry_after(&parts.headers) });
                }
                let region = header_text(&parts.headers, REGION);
                // Of which `object_store` passes nothing on.
                if status.is_redirection() && (region.is_some() || message.starts_with("PermanentRedirect")) {
                    let region = region.unwrap_or("that of the bucket, or AWS_ENDPOINT to the address of its server");
                    return Err(Told::Final(format!("the bucket is in another region; set AWS_REGION to {region}")));
                }
                body
            }
        };
        // `object_store` requires it, and an answer in chunks does not have it.
        parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| body.len().into());
        Ok(HttpResponse::from_parts(parts, body.into()))
    }

    fn run(&self, request: Request<impl ureq::AsSendBody>, is_metadata: bool) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let timeout = Some(if is_metadata { METADATA_TIMEOUT.min(self.timeout) } else { self.timeout });
        let request = self.agent.configure_request(request).timeout_connect(timeout).timeout_recv_response(timeout).build();
        self.agent.run(request)
    }

    /// A body of at most so many bytes and one more, read into memory that does not grow meanwhile.
    fn range(&self, body: Body, n_bytes: u64) -> Result<Vec<u8>, Told> {
        let expected = body.content_length().unwrap_or(0).min(n_bytes);
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
        let mut reader = self.paced(body.into_reader().take(n_bytes.saturating_add(1)));
        reader.read_to_end(&mut bytes).map_err(|error| self.told(&ureq::Error::from(error)))?;
        Ok(bytes)
    }

    fn whole(&self, body: Body, limit: u64) -> Result<Vec<u8>, Told> {
        let mut bytes = Vec::new();
        let read = self.paced(body.into_with_config().limit(limit).reader()).read_to_end(&mut bytes);
        read.map_err(|error| self.told(&ureq::Error::from(error)))?;
        Ok(bytes)
    }

    fn paced<R>(&self, reader: R) -> Paced<R> {
        Paced { reader, timeout: self.timeout, since: Instant::now(), n_bytes: 0, heard: self.heard.clone() }
    }

    fn told(&self, error: &ureq::Error) -> Told {
        let transient = |what| Told::Transient { what, after: None };
        match error {
            ureq::Error::Timeout(_) => transient(format!("the server did not answer for {:?}", self.timeout)),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                transient("the server closed the connection before the end".to_owned())
            }
            ureq::Error::HostNotFound => transient("the host was not found".to_owned()),
            // rustls reports its errors, such as a certificate that is not valid, as errors of the connection.
            ureq::Error::Io(cause) if cause.kind() == std::io::ErrorKind::InvalidData => {
                Told::Final(format!("no secure connection: {}; the server may speak http: only", said(&cause.to_string())))
            }
            ureq::Error::Io(cause) => transient(said(&cause.to_string())),
            ureq::Error::ConnectionFailed | ureq::Error::BodyExceedsLimit(_) => transient(said(&error.to_string())),
            ureq::Error::Protocol(_) => transient(format!("the server does not speak HTTP: {}", said(&error.to_string()))),
            ureq::Error::RequireHttpsOnly(_) => Told::Final(
                "the server is at an http: address; set AWS_ALLOW_HTTP=true, or that of the store, to send requests unencrypted"
                    .to_owned(),
            ),
            error => Told::Final(said(&error.to_string())),
        }
    }
}

/// A body, which is an error once it arrives too slowly for the length of a timeout.
struct Paced<R> {
    reader: R,
    timeout: Duration,
    since: Instant,
    /// What has arrived since then.
    n_bytes: usize,
    heard: Heard,
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.reader.read(out)?;
        self.heard.note();
        self.n_bytes += n_bytes;
        let elapsed = self.since.elapsed();
        if elapsed >= self.timeout {
            if n_bytes > 0 && (self.n_bytes as f64) < LEAST_BYTES_PER_S * elapsed.as_secs_f64() {
                return Err(io::Error::other(format!("the server sent {} bytes in {elapsed:.1?}", self.n_bytes)));
            }
            (self.since, self.n_bytes) = (Instant::now(), 0);
        }
        Ok(n_bytes)
    }
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Why a server answers a request for a range with something whole.
fn whole_instead(headers: &HeaderMap) -> Told {
    let is_page = |of: &str| of.trim_start().to_ascii_lowercase().starts_with("text/html");
    if header_text(headers, header::CONTENT_TYPE).is_some_and(is_page) {
        return Told::Final("the server sends a page for browsers, such as the list of a folder; check the URL".to_owned());
    }
    // Some servers answer so for an empty object, instead of status 416.
    if header_text(headers, header::CONTENT_LENGTH) == Some("0") {
        return Told::BeyondEnd;
    }
    Told::NoRanges
}

fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

fn transient(status: StatusCode, headers: &HeaderMap, body: Body) -> Told {
    let message = body.into_with_config().limit(LONGEST_MESSAGE).read_to_string().unwrap_or_default();
    let message = said(&message);
    let what = match status {
        StatusCode::TOO_MANY_REQUESTS => format!("the server asks for fewer requests, {status}"),
        _ => format!("the server failed, {status}"),
    };
    let what = if message.is_empty() { what } else { format!("{what}: {message}") };
    Told::Transient { what, after: retry_after(headers) }
}

/// How long the server asks to wait: in seconds, or until a time by its own clock, if it says what that is.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = header_text(headers, header::RETRY_AFTER)?.trim();
    let seconds_of = |date: &str| DateTime::parse_from_rfc2822(date).ok().map(|time| time.timestamp());
    let until = || {
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs().try_into().ok();
        let now = header_text(headers, header::DATE).and_then(seconds_of).or_else(now)?;
        Some(seconds_of(text)?.saturating_sub(now).max(0).unsigned_abs())
    };
    text.parse().ok().or_else(until).map(Duration::from_secs)
}

/// The first byte and the last of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// `bytes=0-99`
    fn requested(header: &str) -> Option<Self> {
        let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
        let range = Self { first: first.parse().ok()?, last: last.parse().ok()? };
        (range.first <= range.last).then_some(range)
    }

    fn n_bytes(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// Checks that an answer is this range, as far as the object has it.
    fn check(self, content_range: Option<&str>, n_bytes: u64) -> Result<(), Told> {
        let wrong = |what| Err(Told::Transient { what, after: None });
        if content_range.is_some_and(|text| text.trim_end().ends_with("/*")) {
            return Err(Told::Final("the server does not say how long the file is, only which range it sent".to_owned()));
        }
        let Some((range, total)) = content_range.and_then(|text| text.trim().strip_prefix("bytes ")?.split_once('/')) else {
            return wrong("the server does not say which range it sent".to_owned());
        };
        let sent = Self::requested(&format!("bytes={range}"));
        let expected =
            Self { last: total.parse::<u64>().map_or(self.last, |total| self.last.min(total.saturating_sub(1))), ..self };
        let Self { first, last } = expected;
        if sent != Some(expected) {
            return wrong(format!("the server sent the range {range}, {first}-{last} was requested"));
        }
        if n_bytes != expected.n_bytes() {
            return wrong(format!("the server sent {n_bytes} bytes of the range {first}-{last}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_ask_for_seconds_or_until_a_time() {
        let after = |retry_after: &str, date: Option<&str>| {
            let headers = [(header::RETRY_AFTER, Some(retry_after)), (header::DATE, date)];
            let headers = headers.into_iter().filter_map(|(name, text)| Some((name, text?.parse().unwrap())));
            super::retry_after(&headers.collect())
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(after(" 7 ", None), seconds(7));
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(after("Wed, 21 Oct 2015 07:29:30 GMT", date), seconds(90));
        assert_eq!(after("Wed, 21 Oct 2015 07:27:00 GMT", date), seconds(0), "a time that has passed");
        assert_eq!(after("Wed, 21 Oct 2015 07:27:00 GMT", None), seconds(0), "by the clock of this machine");
        assert_eq!(after("soon", date), None);
    }

    #[test]
    fn a_range_is_compared_with_what_was_requested() {
        let asked = Range::requested("bytes=10-19").unwrap();
        let is_right = |header, n_bytes| asked.check(header, n_bytes).is_ok();
        assert!(is_right(Some("bytes 10-19/100"), 10), "all of it");
        assert!(is_right(Some("bytes 10-14/15"), 5), "up to the end of the object");
        assert!(!is_right(Some("bytes 10-19/100"), 9), "too few bytes");
        assert!(!is_right(Some("bytes 10-14/100"), 5), "a shorter range");
        assert!(!is_right(Some("bytes 0-9/100"), 10), "another range");
        assert!(!is_right(None, 10), "an unknown range");
        assert!(!is_right(Some("bytes 10-19/*"), 10), "a file of unknown length");
        assert_eq!(Range::requested("bytes=5-"), None);
        assert_eq!(Range::requested("bytes=5-4"), None);
    }
}
