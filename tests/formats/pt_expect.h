/*
 * Holds a PyTorch fixture to what PyTorch said of it: NAME.pt against NAME.txt, which
 * data/make_pt.py wrote beside it.
 */
#ifndef ND_TESTS_FORMATS_PT_EXPECT_H
#define ND_TESTS_FORMATS_PT_EXPECT_H

/* Every line of the text is there, and no tensor beyond them. */
void expect_fixture(const char *folder, const char *name, const char *format);

#endif
