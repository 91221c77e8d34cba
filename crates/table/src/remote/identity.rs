use object_store::ObjectMeta;

/// What distinguishes an object from another one that takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) n_bytes: u64,
    e_tag: Option<String>,
    version: Option<String>,
    /// In milliseconds since 1970, if there is neither a tag nor a version; 0 if the server does not say.
    modified_ms: i64,
}

impl Identity {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        let is_named = meta.e_tag.is_some() || meta.version.is_some();
        let modified_ms = if is_named { 0 } else { meta.last_modified.timestamp_millis() };
        Self { n_bytes: meta.size, e_tag: meta.e_tag.clone(), version: meta.version.clone(), modified_ms }
    }

    /// The tag with which a server compares by itself. A weak tag never matches (RFC 9110, section 13.1.1).
    pub(super) fn strong_tag(&self) -> Option<String> {
        self.e_tag.clone().filter(|tag| !tag.starts_with("W/"))
    }

    /// Whether the server named the object, by a tag or a version.
    pub(super) fn is_named(&self) -> bool {
        self.e_tag.is_some() || self.version.is_some()
    }

    /// Whether another object would be noticed at all, except by its length.
    pub(super) fn is_certain(&self) -> bool {
        self.is_named() || self.modified_ms != 0
    }

    /// How another object differs.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let differs = |what: &str, was: String, is: String| Some(format!("its {what} was {was} and is {is}"));
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "unknown".to_owned());
        if self.n_bytes != now.n_bytes {
            return differs("length", self.n_bytes.to_string(), now.n_bytes.to_string());
        }
        if self.e_tag != now.e_tag {
            return differs("ETag", word(&self.e_tag), word(&now.e_tag));
        }
        if self.version != now.version {
            return differs("version", word(&self.version), word(&now.version));
        }
        (self.modified_ms != now.modified_ms).then(|| "its time of modification is another".to_owned())
    }
}

/// As a line of a cache's key.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { n_bytes, e_tag, version, modified_ms } = self;
        write!(f, "{n_bytes} {e_tag:?} {version:?} {modified_ms}")
    }
}
