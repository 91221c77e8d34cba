use std::error::Error as StdError;
use std::time::Duration;

use super::location::{Location, redacted};
use crate::error::RemoteError;

/// What the transport found out about a request that failed. It passes through `object_store` as the source of an error.
#[derive(Clone, Debug, thiserror::Error)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only requests fail like this"))]
pub(super) enum Told {
    /// The same request may succeed later.
    #[error("{what}")]
    Transient { what: String, after: Option<Duration> },
    /// It will not succeed.
    #[error("{0}")]
    Final(String),
    /// The server answered a request for a range with the whole object.
    #[error("the server ignores ranges")]
    NoRanges,
    /// The range is beyond the end of the object.
    #[error("the range is beyond the end")]
    BeyondEnd,
    /// The address at which cloud machines find their credentials does not answer.
    #[error("neither in the settings nor from {host}")]
    NoCredentials { host: String },
}

/// What to do about a failed request.
#[derive(Debug)]
pub(super) enum Failure {
    Transient { what: String, after: Option<Duration> },
    BeyondEnd,
    Final(RemoteError),
}

impl Failure {
    pub(super) fn transient(what: impl Into<String>) -> Self {
        Self::Transient { what: what.into(), after: None }
    }

    /// The meaning of an error of `object_store`.
    pub(super) fn of(error: &object_store::Error, location: &Location) -> Self {
        let problem = said(&error.to_string());
        let help = help(&problem, location);
        let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(found) = cause {
            if let Some(told) = found.downcast_ref::<Told>() {
                return match told.clone() {
                    Told::Transient { what, after } => Self::Transient { what, after },
                    Told::Final(problem) => Self::Final(RemoteError::Failed { problem }),
                    Told::NoRanges => Self::Final(RemoteError::NoRanges),
                    Told::BeyondEnd => Self::BeyondEnd,
                    told @ Told::NoCredentials { .. } => {
                        Self::Final(RemoteError::NoCredentials { problem: told.to_string(), help })
                    }
                };
            }
            cause = found.source();
        }
        Self::Final(match error {
            object_store::Error::NotFound { .. }
                if ["NoSuchBucket", "ContainerNotFound"].iter().any(|code| problem.starts_with(code)) =>
            {
                RemoteError::NoBucket { bucket: location.host().to_owned() }
            }
            object_store::Error::NotFound { .. } => RemoteError::NotFound,
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                RemoteError::Refused { problem, help }
            }
            object_store::Error::Precondition { .. } => {
                RemoteError::Changed { problem: "the server has another version".to_owned() }
            }
            // Amazon S3 answers these with 400.
            _ if ["ExpiredToken", "TokenRefreshRequired", "InvalidToken", "AuthorizationHeaderMalformed", CLOCK]
                .iter()
                .any(|code| problem.starts_with(code)) =>
            {
                RemoteError::Refused { problem, help }
            }
            _ => RemoteError::Failed { problem },
        })
    }
}

/// What Amazon S3 calls a signature whose time is not that of its clock.
const CLOCK: &str = "RequestTimeTooSkewed";

/// What to do about a request that was refused.
fn help(problem: &str, location: &Location) -> &'static str {
    if problem.starts_with(CLOCK) {
        "set the clock of this machine, which differs from that of the server"
    } else if ["ExpiredToken", "TokenRefreshRequired"].iter().any(|code| problem.starts_with(code)) {
        "get new credentials, which replace AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and start again; a training run resumes from its last checkpoint"
    } else {
        location.scheme.help()
    }
}

/// The part of a message that a server wrote, without secrets: code and message of its XML, or the end of the text, without a
/// page for browsers.
pub(super) fn said(text: &str) -> String {
    const LONGEST: usize = 300;
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(content, _)| content.trim())
    };
    let words = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(word), None) | (None, Some(word)) => word.to_owned(),
        (None, None) => {
            let end = text.rsplit_once("status code: ").map_or(text, |(_, end)| end).trim();
            let lower = end.to_ascii_lowercase();
            let page = ["<html", "<!doctype html"].iter().filter_map(|tag| lower.find(tag)).min();
            end[..page.unwrap_or(end.len())].to_owned()
        }
    };
    let words = redacted(words.trim_end_matches([' ', ':', '.']));
    words.char_indices().nth(LONGEST).map_or(words.clone(), |(end, _)| format!("{}…", &words[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem and the help of the error for a response of Amazon S3 with this error code.
    fn refused(code: &str, is_denied: bool) -> (String, &'static str) {
        let (path, source) =
            ("o".to_owned(), format!("status code: 4xx: <Error><Code>{code}</Code><Message>No.</Message></Error>").into());
        let error = match is_denied {
            true => object_store::Error::PermissionDenied { path, source },
            false => object_store::Error::Generic { store: "S3", source },
        };
        match Failure::of(&error, &Location::parse("file:///b/o").expect("it is a URL")) {
            Failure::Final(RemoteError::Refused { problem, help }) => (problem, help),
            other => panic!("{code}: {other:?}"),
        }
    }

    #[test]
    fn a_wrong_clock_and_expired_credentials_are_named() {
        for is_denied in [true, false] {
            let (problem, help) = refused("RequestTimeTooSkewed", is_denied);
            assert!(
                problem.starts_with("RequestTimeTooSkewed") && help.contains("clock") && !help.contains("KEY"),
                "{problem}; {help}"
            );
            for code in ["ExpiredToken", "TokenRefreshRequired"] {
                let (problem, help) = refused(code, is_denied);
                assert!(
                    problem.starts_with(code) && help.contains("AWS_SESSION_TOKEN") && help.contains("resumes"),
                    "{problem}; {help}"
                );
            }
        }
        let (_, help) = refused("AccessDenied", true);
        assert!(help.contains("permissions"), "that of the scheme: {help}");
    }

    #[test]
    fn the_words_of_the_server_are_found() {
        let xml = "Error performing GET http://h/b?X-Amz-Signature=1 in 3ms - Server returned non-2xx status code: 403 Forbidden: <Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>";
        assert_eq!(said(xml), "AccessDenied: Access Denied");
        assert_eq!(said("Error performing GET http://h - Server returned non-2xx status code: 403 Forbidden: "), "403 Forbidden");
        let page = "status code: 403 Forbidden: <!DOCTYPE html>\r\n<HTML><body>Forbidden</body></HTML>";
        assert_eq!(said(page), "403 Forbidden");
        assert_eq!(said("<html><head><title>503</title></head></html>"), "", "the status is given before");
        assert_eq!(said("cannot read http://u:p@h/x?sig=1"), "cannot read http://h/x?…");
        assert_eq!(said(&"x".repeat(1000)).chars().count(), 301);
    }
}
