use std::path::PathBuf;

use brisk_atomic_file::printable;
use url::Url;

use crate::error::{Error, RemoteError};

/// Where a URL leads to.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A file of this machine.
    File(PathBuf),
    /// An object of a server.
    Server(Location),
}

impl Place {
    pub(crate) fn of(url: &str) -> Result<Self, Error> {
        let location = Location::parse(url)?;
        if location.scheme != Scheme::File {
            return Ok(Self::Server(location));
        }
        let path = location.url.to_file_path();
        path.map(Self::File)
            .map_err(|()| location.error(problem("expected file:///PATH, with the path of a file of this machine")))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    File,
    Http,
    S3,
    Gs,
    Az,
}

impl Scheme {
    const ALL: [(&'static str, Self); 6] =
        [("file", Self::File), ("http", Self::Http), ("https", Self::Http), ("s3", Self::S3), ("gs", Self::Gs), ("az", Self::Az)];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::File => "file:",
            Self::Http => "http:",
            Self::S3 => "s3:",
            Self::Gs => "gs:",
            Self::Az => "az:",
        }
    }

    /// How to give credentials.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::File => "check the permissions of the file",
            Self::Http => "check the URL; it may contain `user:password@` or a signature",
            Self::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION or AWS_ENDPOINT if needed; AWS_SKIP_SIGNATURE=true for public buckets"
            }
            Self::Gs => "set GOOGLE_SERVICE_ACCOUNT to the file of a key; GOOGLE_SKIP_SIGNATURE=true for public buckets",
            Self::Az => "set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY",
        }
    }

    /// What a URL is called, the feature that it needs, and whether that is enabled.
    fn feature(self) -> (&'static str, &'static str, bool) {
        match self {
            Self::File => ("a file: URL", "remote", true),
            Self::Http => ("an http: URL", "http", cfg!(feature = "http")),
            Self::S3 => ("an s3: URL", "s3", cfg!(feature = "s3")),
            Self::Gs => ("a gs: URL", "gs", cfg!(feature = "gs")),
            Self::Az => ("an az: URL", "az", cfg!(feature = "az")),
        }
    }
}

/// The URL of an object.
#[derive(Clone)]
pub(crate) struct Location {
    /// With its secrets.
    url: Url,
    pub(super) scheme: Scheme,
}

impl Location {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        // A URL that is not valid may contain secrets anywhere, so that only its scheme is shown.
        let Some((word, _)) = text.split_once(':') else {
            let problem = "is a path; open it as one, or give a URL like s3://BUCKET/TABLE.safetensors".to_owned();
            return Err(Error::Remote { url: printable(text).to_string(), reason: RemoteError::Url { problem } });
        };
        let wrong = |problem: String| Error::Remote { url: printable(word).to_string(), reason: RemoteError::Url { problem } };
        let url = Url::parse(text)
            .map_err(|error| wrong(format!("is not a URL: {error}; expected one like s3://BUCKET/TABLE.safetensors")))?;
        let scheme = Scheme::ALL.iter().find(|(name, _)| *name == url.scheme()).map(|&(_, scheme)| scheme);
        let scheme =
            scheme.ok_or_else(|| wrong("is not a scheme that tables have; use http, https, s3, gs, az or file".to_owned()))?;
        let location = Self { url, scheme };
        // `https:host/x` would be read as `https://host/x`, and in `s3:bucket/x` the bucket would be part of a name.
        if let Some((word, rest)) = text.split_once(':').filter(|(_, rest)| scheme != Scheme::File && !rest.starts_with("//")) {
            let rest = rest.trim_start_matches('/');
            let meant = Url::parse(&format!("{word}://{rest}")).map(|url| Self { url, scheme }.shown());
            let meant = meant.unwrap_or_else(|_| format!("{word}://…"));
            return Err(wrong(format!("has no `//` after its scheme; {meant} was probably meant")));
        }
        let (found, feature, is_enabled) = scheme.feature();
        if !is_enabled {
            let instead = "download the table and open the file";
            return Err(Error::FeatureOff { path: location.path(), found, feature, instead });
        }
        if scheme != Scheme::File && location.host().is_empty() {
            return Err(location.error(problem("names no host or bucket; expected one like s3://BUCKET/TABLE.safetensors")));
        }
        let has_user = !location.url.username().is_empty() || location.url.password().is_some();
        if has_user && scheme != Scheme::Http {
            return Err(
                location.error(problem("has a user or a password, which only http: and https: URLs may have; leave them out"))
            );
        }
        Ok(location)
    }

    /// The URL without secrets, for messages.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.url.clone();
        // These fail for URLs without a host, which have neither.
        _ = url.set_username("");
        _ = url.set_password(None);
        let has_query = url.query().is_some();
        url.set_query(None);
        url.set_fragment(None);
        format!("{url}{}", if has_query { "?…" } else { "" })
    }

    /// The same as a path, for errors of tables.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(self.shown())
    }

    pub(crate) fn error(&self, reason: RemoteError) -> Error {
        Error::Remote { url: self.shown(), reason }
    }

    /// The location of an object in this folder.
    pub(crate) fn child(&self, name: &str) -> Self {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(name);
        }
        Self { url, ..*self }
    }

    /// The location of an object in the same folder.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().pop().push(name);
        }
        Self { url, ..*self }
    }

    /// Whether the name ends like this.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.url.path().rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }

    /// The path within the host or bucket, without the leading slash and still percent-encoded.
    pub(super) fn object(&self) -> &str {
        self.url.path().trim_start_matches('/')
    }

    /// The last part of the path, still percent-encoded; empty for a folder that ends with a slash, or a host without a path.
    pub(crate) fn name(&self) -> &str {
        self.object().rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.url.query()
    }

    #[cfg(feature = "http")]
    pub(super) fn user(&self) -> Option<String> {
        let (user, password) = (self.url.username(), self.url.password());
        (!user.is_empty() || password.is_some()).then(|| format!("{user}:{}", password.unwrap_or_default()))
    }

    /// Everything that the objects of one store have in common, with secrets.
    pub(super) fn base(&self) -> Url {
        let mut base = self.url.clone();
        base.set_path("/");
        base.set_fragment(None);
        base
    }
}

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

fn problem(text: &str) -> RemoteError {
    RemoteError::Url { problem: text.to_owned() }
}

/// Text of a server or a library, with the secrets of all URLs in it left out.
pub(super) fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + "://".len());
        out.push_str(before);
        let end =
            url.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')' | ',' | '`')).unwrap_or(url.len());
        let (url, after) = url.split_at(end);
        let authority_end = url.find(['/', '?', '#']).unwrap_or(url.len());
        let start = url[..authority_end].rfind('@').map_or(0, |at| at + 1);
        let url = &url[start..];
        match url.find('?') {
            Some(query) => out.extend([&url[..query], "?…"]),
            None => out.push_str(url),
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{Location, redacted};

    #[test]
    fn secrets_are_left_out() {
        let text = "Error performing GET https://me:pass@host/t?sig=abc&x=1 in 3s, then 'http://host/u' (s3://b/c?d)";
        assert_eq!(redacted(text), "Error performing GET https://host/t?… in 3s, then 'http://host/u' (s3://b/c?…)");
        assert_eq!(redacted("no URL? none"), "no URL? none");
    }

    #[test]
    fn a_scheme_without_slashes_is_an_error_that_says_what_was_meant() {
        for (text, meant) in [
            ("s3:bucket/x", "s3://bucket/x"),
            ("s3:/bucket/x", "s3://bucket/x"),
            ("gs:bucket", "gs://bucket"),
            ("az:box/x", "az://box/x"),
            ("https:host/x", "https://host/x"),
            ("HTTP:me:pass@host/x?sig=1", "http://host/x?…"),
        ] {
            let error = Location::parse(text).expect_err("it has no `//`").to_string();
            assert!(error.contains(meant) && !error.contains("pass") && !error.contains("sig"), "{text}: {error}");
        }
        assert!(Location::parse("file:/a/b").is_ok(), "a file: URL needs no host");
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_location_names_its_neighbours() {
        let folder = Location::parse("https://me:pass@host:81/a/b/?sig=x").expect("it is a URL");
        let index = folder.child("table.json");
        assert_eq!(index.shown(), "https://host:81/a/b/table.json?…");
        assert_eq!(index.sibling("c.d").shown(), "https://host:81/a/b/c.d?…");
        assert_eq!(index.sibling("c.d").query(), Some("sig=x"));
        assert!(index.has_extension("json") && !folder.has_extension("json"), "{index:?}");
        assert!(!format!("{folder:?}").contains("pass"), "{folder:?}");
    }
}
