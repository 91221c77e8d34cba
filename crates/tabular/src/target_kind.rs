use std::fmt;

/// Names of columns that are targets.
pub(super) const TARGETS: [&str; 4] = ["target", "label", "class", "y"];

/// The kind of a [`Target`](crate::Target).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// One of two classes.
    Binary,
    /// One of several classes.
    Classes,
    /// A number: regression.
    Number,
}

impl TargetKind {
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Binary => "two different labels",
            Self::Classes => "the names of classes, or whole numbers",
            Self::Number => "numbers",
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Classes => "classes",
            Self::Number => "number",
        })
    }
}
