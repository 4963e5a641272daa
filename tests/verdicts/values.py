"""What stands for a number that could not be computed."""

import math

NOT_FINITE = (math.nan, math.inf, -math.inf)
NOT_COMPUTED = (*NOT_FINITE, None)
