mod block;
mod chunks;
mod decimal;
mod head;
mod import;
mod input;
mod options;
mod pipeline;
mod quotes;
mod rows;

pub use import::{ImportReport, Imported, Progress, import_csv, import_csv_if_changed, import_csv_with_progress};
pub use options::{BadRows, ColumnRef, CsvOptions, Decimal, Delimiter, Header, LabelKind, Missing};
