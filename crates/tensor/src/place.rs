use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Where an operation was recorded: the [scope](crate::Graph::scope), and the line of the caller's source.
///
/// `Display` is one line, such as ``in conv2, at src/main.rs:12``, with the caller's line before that of a library that called
/// the operation; `Debug` also prints the backtrace, if there is one.
#[derive(Clone)]
pub struct Place {
    scope: String,
    location: &'static Location<'static>,
    outer: Option<&'static Location<'static>>,
    made_at: Option<&'static Location<'static>>,
    backtrace: Option<Arc<Backtrace>>,
}

impl Place {
    /// The caller's line.
    #[track_caller]
    pub(crate) fn caller(scopes: &[OpenScope], outer: Option<&'static Location<'static>>) -> Self {
        let backtrace = Backtrace::capture();
        let is_captured = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_captured.then(|| Arc::new(backtrace));
        Self { scope: path(scopes), location: Location::caller(), outer, made_at: made_at(scopes), backtrace }
    }

    /// The scopes that were open, joined by dots, such as `encoder.layers.0`; empty outside of all scopes.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The file and line that called the operation.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The file and line that called the model, if the operation was called through a `dyn` module or a closure of a library.
    pub fn outer(&self) -> Option<&'static Location<'static>> {
        self.outer
    }

    /// The file and line where the [layer](crate::Graph::enter_layer) was made that recorded the operation.
    pub fn made_at(&self) -> Option<&'static Location<'static>> {
        self.made_at
    }

    /// The backtrace of the operation, if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` enables it.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        self.backtrace.as_deref()
    }
}

/// Backtraces are not compared.
impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        (&self.scope, self.location, self.outer, self.made_at) == (&other.scope, other.location, other.outer, other.made_at)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scope.is_empty() {
            write!(f, "in {}, ", self.scope)?;
        }
        // The caller's lines come first, then one that may be a library's.
        let line = |at: &Location<'_>| format!("{}:{}", at.file(), at.line());
        let (inner, outer) = (line(self.location), self.outer.map(line));
        write!(f, "at {}", outer.as_ref().unwrap_or(&inner))?;
        self.made_at.map_or(Ok(()), |made_at| write!(f, "; the layer was made at {}", line(made_at)))?;
        outer.filter(|outer| *outer != inner).map_or(Ok(()), |_| write!(f, "; recorded at {inner}"))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")?;
        self.backtrace.as_ref().map_or(Ok(()), |backtrace| write!(f, "\n{backtrace}"))
    }
}

/// The name of an open scope and, for the scope of a layer, the line where the layer was made.
#[derive(Debug)]
pub(crate) struct OpenScope {
    pub(crate) name: String,
    pub(crate) made_at: Option<&'static Location<'static>>,
}

/// The scopes as one dotted name.
pub(crate) fn path(scopes: &[OpenScope]) -> String {
    scopes.iter().map(|scope| &scope.name).filter(|name| !name.is_empty()).fold(String::new(), |path, name| {
        let is_absolute = name.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if path.is_empty() || is_absolute { name.clone() } else { format!("{path}.{name}") }
    })
}

/// The line where the innermost layer was made.
fn made_at(scopes: &[OpenScope]) -> Option<&'static Location<'static>> {
    scopes.iter().rev().find_map(|scope| scope.made_at)
}
