/// Names of constants: for each of the first words an array of that word with each of the second.
macro_rules! names {
    ($($first:literal)+, $($second:literal)+) => {
        names!(@ [$($second)+] $($first)+)
    };
    (@ $second:tt $($first:literal)+) => {
        [$(names!(# $first $second)),+]
    };
    (# $first:literal [$($second:literal)+]) => {
        [$(concat!($first, $second)),+]
    };
}
pub(crate) use names;
