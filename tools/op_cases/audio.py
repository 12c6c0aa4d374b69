"""Sound: WAV files, spectrograms, cepstra."""
import struct

from op_cases import *

F32 = np.float32


def wav(samples, rate=16000, before=b"", after=b"", coding=1, bits=16, width=None, speed=None, size=16, data_size=None):
    samples = np.asarray(samples, np.int16)
    channels = samples.shape[1]
    data = samples.tobytes()
    width = 2 * channels if width is None else width
    speed = width * rate if speed is None else speed
    form = struct.pack("<HHIIHH", coding, channels, rate, speed, width, bits).ljust(size, b"\0")
    body = b"WAVE" + before + b"fmt " + struct.pack("<I", size) + form + after
    body += b"data" + struct.pack("<I", len(data) if data_size is None else data_size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def text(v):
    return np.array(v, dtype=object)


def wav_cases(r):
    mono, stereo = r.ints((7, 1), -32768, 32768, t="int16"), r.ints((5, 2), -32768, 32768, t="int16")

    def decode(data, error=None, **attrs):
        return case("DecodeWav", text(data), error=error, **attrs)

    for s in [mono, stereo, mono[:0]]:
        for channels in [-1, 0, 1, 3]:
            for samples in [-1, 0, 3, 9]:
                yield decode(wav(s), desired_channels=channels, desired_samples=samples)
    yield decode(wav(mono, before=chunk(b"JUNK", b"abcd") + chunk(b"bext", b""), size=18))
    yield decode(wav(mono, after=chunk(b"LIST", b"abcdef"), rate=44100))
    yield decode(wav(stereo) + chunk(b"LIST", b"abc"))
    yield decode(wav(stereo, data_size=18) + b"12", error="Data too short when trying to read string")
    yield decode(wav(stereo) + struct.pack("<4sI", b"more", 2**31 - 1))
    short = "Data too short when trying to read string"
    f = wav(mono)
    for cut in [0, 3, 10, 20, 38, 42, len(f) - 1]:
        yield decode(f[:cut], error=short)
    yield decode(f[:36], error="No data chunk found in WAV")
    yield decode(b"RIFX" + f[4:], error="Header mismatch: Expected RIFF but found RIFX")
    yield decode(f.replace(b"WAVE", b"WAVY"), error="Header mismatch: Expected WAVE but found WAVY")
    yield decode(wav(mono, before=chunk(b"what", b"")), error="Unexpected field what")
    yield decode(wav(mono, size=20), error="Bad format chunk size for WAV: Expected 16 or 18, but got20")
    yield decode(wav(mono, coding=3), error="Bad audio format for WAV: Expected 1 (PCM), but got3")
    yield decode(wav(np.zeros((4, 0))), error="Bad number of channels for WAV: Expected at least 1, but got 0")
    yield decode(wav(mono, bits=8), error="Can only read 16-bit WAV files, but received 8")
    yield decode(wav(mono, width=3), error="Bad bytes per sample in WAV header: Expected 2 but got 3")
    yield decode(wav(mono, speed=7), error="Bad bytes per second in WAV header: Expected 32000 but got 7 (sample_rate=1600")
    yield decode(f + chunk(b"data", b"12"), error="More than one data chunk found in WAV")
    yield decode(wav(mono, data_size=2**31), error="WAV data chunk 'data' is too large: 2147483648 bytes, but the limit")
    yield decode(wav(mono, data_size=2**31 - 1), error=short)
    yield decode(wav(mono, before=struct.pack("<4sI", b"JUNK", 2**31 - 1)), error=short)
    yield case("DecodeWav", text([f]), error="contents must be scalar, got shape [1]")
    for shape in [(6, 1), (4, 2), (0, 1), (3, 5)]:
        for rate in [8000, 44100]:
            yield case("EncodeWav", r.uniform(shape, -1.2, 1.2), i32(rate))
    yield case("EncodeWav", np.array([[1, -1, np.inf, -np.inf, 0.5 / 32768, 1.5 / 32768, -0.5 / 32768]], F32), i32(1))
    yield case("EncodeWav", r.uniform((4,)), i32(1), error="audio must be 2-dimensional[4]")
    yield case("EncodeWav", r.uniform((4, 1)), i32([1]), error="Input sample_rate should be a scalar tensor, got [1] in")
    yield case("EncodeWav", r.uniform((4, 0)), i32(1), error="num_channels must be in (0, 2^16), got: 0")
    yield case("EncodeWav", r.uniform((4, 1)), i32(0), error="sample_rate must be in (0, 2^32), got: 0")
    yield case("EncodeWav", r.uniform((4, 1)), i32(-5), error="sample_rate must be in (0, 2^32), got: ")


def spectrum_cases(r):
    for window, stride in [(2, 1), (5, 3), (8, 8), (16, 4), (33, 20), (64, 64)]:
        for squared in [False, True]:
            for shape in [(40, 1), (33, 2), (1, 1), (0, 2)]:
                yield case("AudioSpectrogram", r.normal(shape), window_size=window, stride=stride,
                           magnitude_squared=squared, tol=(1e-4, 1e-5))
    x = r.normal((20, 1))
    yield case("AudioSpectrogram", x[:, 0], window_size=4, stride=1, error="input must be 2-dimensional[20]")
    for bins, rate in [(65, 16000), (33, 8000), (17, 16000), (129, 44100)]:
        for more in [dict(), dict(upper_frequency_limit=3000.0, lower_frequency_limit=100.0),
                     dict(filterbank_channel_count=10, dct_coefficient_count=10),
                     dict(filterbank_channel_count=3, dct_coefficient_count=1, lower_frequency_limit=0.0)]:
            yield case("Mfcc", r.uniform((1, 1, bins), hi=9.0), i32(rate), tol=(1e-4, 1e-5), **more)
    yield case("Mfcc", r.uniform((2, 3, 20), hi=9.0), i32(8000), tol=(1e-4, 1e-5))
    yield case("Mfcc", r.uniform((2, 0, 20)), i32(8000))
    yield case("Mfcc", np.zeros((1, 1, 33), F32), i32(8000), tol=(1e-4, 1e-5))
    yield case("Mfcc", r.uniform((1, 1, 33)), i32(8000), upper_frequency_limit=9000.0)
    failed = "Mfcc initialization failed for channel count "
    x = r.uniform((1, 1, 33))
    yield case("Mfcc", x, i32(0), error=failed + "33, sample rate 0 and filterbank_channel_count 40")
    yield case("Mfcc", x[..., :1], i32(8000), error=failed + "1, sample rate 8000 and")
    for more in [dict(filterbank_channel_count=0), dict(dct_coefficient_count=0), dict(dct_coefficient_count=41),
                 dict(lower_frequency_limit=-1.0), dict(upper_frequency_limit=20.0)]:
        yield case("Mfcc", x, i32(8000), error=failed + "33, sample rate 8000 and filterbank_channel_count", **more)
    yield case("Mfcc", x[0], i32(8000), error="spectrogram must be 3-dimensional[1,33]")
    yield case("Mfcc", x, i32([8000]), error="Input sample_rate should be a scalar tensor, got [1] instead.")


def cases(r):
    yield from wav_cases(r)
    yield from spectrum_cases(r)
