"""Reads with TensorBoard what the test `tensorboard` has written into the folder given: `python read_events.py FOLDER`."""

import io
import math
import sys

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing import event_accumulator

SIZES = {name: 0 for name in ("scalars", "images", "histograms", "tensors")}


def main(folder):
    events = event_accumulator.EventAccumulator(folder, size_guidance=SIZES)
    events.Reload()
    tags = events.Tags()
    assert sorted(tags["scalars"]) == ["loss/train", "loss/valid", "odd"], tags
    losses = events.Scalars("loss/train")
    # The first file ends in the middle of step 8, and the second one resumes at step 6.
    assert [event.step for event in losses] == list(range(12)), losses
    assert all(math.isclose(event.value, 1 / (1 + event.step), rel_tol=1e-6) for event in losses), losses
    assert all(1.6e9 < event.wall_time < 1e11 for event in losses), losses
    odd = [event.value for event in events.Scalars("odd")]
    assert math.isnan(odd[0]) and odd[1] == math.inf, odd

    (histogram,) = events.Histograms("gradients")
    values = np.array([(i * 37 % 101 - 50) / 1000 for i in range(500)], dtype=np.float32).astype(np.float64)
    found = histogram.histogram_value
    assert (found.num, found.min, found.max) == (500, values.min(), values.max()), found
    assert math.isclose(found.sum, values.sum(), abs_tol=1e-9), found
    assert math.isclose(found.sum_squares, (values**2).sum(), rel_tol=1e-9), found
    limits = [-math.inf, *found.bucket_limit[:-1]]
    for low, high, count in zip(limits, found.bucket_limit, found.bucket, strict=True):
        assert ((values >= low) & (values < high)).sum() == count, (low, high, count)

    for tag, mode in (("grey", "L"), ("rgb", "RGB")):
        (image,) = events.Images(tag)
        assert (image.height, image.width) == (3, 5), image
        picture = Image.open(io.BytesIO(image.encoded_image_string))
        assert (picture.mode, picture.size) == (mode, (5, 3)), picture
        expected = np.arange(15 * len(mode), dtype=np.uint8) * 3
        assert (np.asarray(picture).ravel() == expected).all(), np.asarray(picture)
    print("TensorBoard reads it all")


main(sys.argv[1])
