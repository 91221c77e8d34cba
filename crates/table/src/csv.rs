mod block;
mod chunks;
mod decimal;
mod head;
mod import;
mod options;
mod pipeline;
mod quotes;
mod rows;

pub use import::{import_csv, import_csv_if_changed, import_csv_with_progress};
pub use options::{CsvOptions, Decimal, Delimiter, Header};
