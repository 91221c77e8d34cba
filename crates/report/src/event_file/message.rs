//! The messages of `event.proto` and `summary.proto` that are written; fields that are never written are left out.

/// The content of a record.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Event {
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    /// In the first record of a file only.
    #[prost(string, optional, tag = "3")]
    pub(super) file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    pub(super) session_log: Option<SessionLog>,
}

/// `SessionLog`: a run starts again at the event's step.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

impl SessionLog {
    pub(super) const START: i32 = 1;
}

/// `Summary`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<Value>,
}

/// `Summary.Value`, of which one kind of value is set.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(float, optional, tag = "2")]
    pub(super) simple_value: Option<f32>,
    #[prost(message, optional, tag = "4")]
    pub(super) image: Option<Image>,
    #[prost(message, optional, tag = "5")]
    pub(super) histo: Option<Histogram>,
}

/// `Summary.Image`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Image {
    #[prost(int32, tag = "1")]
    pub(super) height: i32,
    #[prost(int32, tag = "2")]
    pub(super) width: i32,
    /// The number of channels.
    #[prost(int32, tag = "3")]
    pub(super) colorspace: i32,
    /// A PNG file.
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded_image_string: Vec<u8>,
}

/// `HistogramProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(double, tag = "1")]
    pub(super) min: f64,
    #[prost(double, tag = "2")]
    pub(super) max: f64,
    #[prost(double, tag = "3")]
    pub(super) num: f64,
    #[prost(double, tag = "4")]
    pub(super) sum: f64,
    #[prost(double, tag = "5")]
    pub(super) sum_squares: f64,
    /// The upper limit of each bucket.
    #[prost(double, repeated, tag = "6")]
    pub(super) bucket_limit: Vec<f64>,
    /// How many values are in each.
    #[prost(double, repeated, tag = "7")]
    pub(super) bucket: Vec<f64>,
}
