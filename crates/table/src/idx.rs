mod header;
mod import;

pub use import::IdxOptions;
