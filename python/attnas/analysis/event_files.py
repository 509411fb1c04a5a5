"""TensorBoard's event files: Event messages of Protocol Buffers, each a record of TFRecord.

    record: length (uint64), crc(length), message, crc(message); little-endian, crc: masked CRC-32C

TensorBoard's event.proto, summary.proto and hparams/plugin_data.proto have the messages' fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

LARGEST = 3.4e38  # scalars are float32


def event_file(start: float, scalars: Iterable[tuple[float, int, Mapping[str, float]]],
               group: str, hparams: Mapping[str, str | float]) -> bytes:
    """One run of TensorBoard.

    @param start    when it began, seconds since 1970.
    @param scalars  when, step, and values by tag; values that are no float32 are left out.
    @param group    runs of one group, as replicates are, are one line of the plugin HParams.
    @param hparams  shown there; none: the run has no line.
    """
    events = [_text(3, "brain.Event:2")]
    if hparams:
        events.append(
            _bytes(
                5,
                _bytes(
                    1,
                    _text(1, "_hparams_/session_start_info") + _bytes(
                        9,
                        _bytes(
                            1,
                            _text(1, "hparams") +
                            _bytes(2, _bytes(3, _session(start, group, hparams))))))))
    parts = [_record(_double(1, start) + event) for event in events]
    for wall_time, step, values in scalars:
        summary = b"".join(_bytes(1, _text(1, tag) + _key(2, 5) + struct.pack("<f", value))
                           for tag, value in values.items() if abs(value) < LARGEST)
        parts.append(
            _record(_double(1, wall_time) + _key(2, 0) + _varint(step) + _bytes(5, summary)))
    return b"".join(parts)


def _session(start: float, group: str, hparams: Mapping[str, str | float]) -> bytes:
    return b"".join(_bytes(1, _text(1, name) + _bytes(
        2, _text(3, value) if isinstance(value, str) else _double(2, value)))
        for name, value in hparams.items()) + _text(4, group) + _double(5, start)


def _varint(value: int) -> bytes:
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _bytes(field: int, content: bytes) -> bytes:
    return _key(field, 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + _masked(crc32c(length)) + message + _masked(crc32c(message))


def _masked(crc: int) -> bytes:
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _shifted(remainder: int) -> int:
    for _ in range(8):
        remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder


_TABLE = [_shifted(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli; RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF
