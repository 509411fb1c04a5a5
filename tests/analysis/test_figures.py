"""Axes of pictures, and pictures as files."""

import re
import unittest
import xml.etree.ElementTree

from attnas.analysis.figures import intervals
from attnas.analysis.svg import Axis, Figure, Picture, linear, wrapped


class Axes(unittest.TestCase):
    def test_ticks_lie_within_the_axis(self):
        for values in ([1.0, 2.0], [0.0, 1e-7], [-3.0, 5.0, float("nan")]):
            axis = linear(values)
            ticks = axis.ticks()
            self.assertGreaterEqual(len(ticks), 2, values)
            self.assertTrue(all(axis.holds(tick) for tick, _ in ticks), values)

    def test_values_equal_but_for_rounding_have_an_axis(self):
        for values in ([0.1 + 0.2, 0.3], [7.0, 7.0], [0.0], []):
            axis = linear(values)
            self.assertGreater(axis.high - axis.low, 0.1, values)
            self.assertLessEqual(len(axis.ticks()), 12, values)
        axis = linear([0.0, 0.0], include=[0.0])
        self.assertLess(axis.low, 0.0)
        self.assertIn((0.0, "0.0"), axis.ticks())

    def test_a_logarithmic_axis_over_many_powers_shows_these_alone(self):
        axis = Axis(2e-4, 50.0, logarithmic=True)
        self.assertEqual([words for _, words in axis.ticks()], ["0.001", "0.01", "0.1", "1", "10"])

    def test_ticks_have_as_many_digits_as_their_step(self):
        for low, high, expected in ((14_890.0, 15_010.0, ["14.9 k", "14.92 k", "14.94 k", "14.96 k", "14.98 k", "15 k"]),
                                    (2_783_400.0, 2_783_420.0, ["2.7834 M", "2.783405 M", "2.78341 M", "2.783415 M",
                                                                "2.78342 M"]),
                                    (0.0, 4e6, ["0", "1 M", "2 M", "3 M", "4 M"])):
            self.assertEqual([words for _, words in Axis(low, high).ticks()], expected)


class Files(unittest.TestCase):
    def test_a_picture_that_is_a_file_says_what_it_is_in_its_own_colours(self):
        def draw(width: float) -> Picture:
            picture = Picture(width, 50, "label")
            picture.dot(1, 2, 3, "fill c0", "name\nmore")
            return picture

        text = Figure(draw, "words & more", "Title", 520).file()
        root = xml.etree.ElementTree.fromstring(text)
        self.assertEqual((root.get("width"), root.get("height")), ("520", "100"))
        self.assertNotIn("var(", text)
        self.assertEqual(text.count(".fill.c0"), 4, "light and dark, each with texts")
        for words in ("#0072b2", "#56b4e9", "Title", "words &amp; more", "<title>name\nmore"):
            self.assertIn(words, text)

    def test_intervals_of_nothing_are_a_picture(self):
        root = xml.etree.ElementTree.fromstring(intervals("Title", "", "x", [], [(0.0, "")]).file())
        self.assertTrue(root.tag.endswith("svg"))


class Wrapped(unittest.TestCase):
    def test_breaks_between_words_and_within_long_names_only(self):
        self.assertEqual(wrapped("one two three", 7), ["one two", "three"])
        self.assertEqual(wrapped("of model{a=b,c=d}/2*attn", 13), ["of model{a=b,", "c=d}/2*attn"])
        self.assertEqual(wrapped("of a,b", 12), ["of a,b"])

    def test_titles_of_files_fit_their_pictures(self):
        name = "model{" + ",".join(f"gene{i}=option" for i in range(20)) + "}"
        file = Figure(lambda width: Picture(width, 100, "x"), "caption", f"Maps of {name}", 520).file()
        heads = re.findall(r'class="head"[^>]*>([^<]*)<', file)
        self.assertEqual("".join(heads), f"Maps of {name}")
        self.assertLess(max(map(len, heads)), 520 / 9.5 + 1)
