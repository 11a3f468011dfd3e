#include "textflag.h"

// The kernels multiply and add in two roundings, in the order of the plain Go ones: the results are the same to the bit.
// What they need besides AVX2 stands in their names. Offsets into ·same are 32 times the places in constants.

#define LEAST  ·same+0(SB)
#define MOST   ·same+32(SB)
#define LOG2E  ·same+64(SB)
#define LN2HI  ·same+96(SB)
#define LN2LO  ·same+128(SB)
#define C6     ·same+160(SB)
#define C5     ·same+192(SB)
#define C4     ·same+224(SB)
#define C3     ·same+256(SB)
#define C2     ·same+288(SB)
#define ONE    ·same+320(SB)
#define BIASED ·same+352(SB)
#define CUBE   ·same+384(SB)
#define SLOPE  ·same+416(SB)
#define TINY   ·same+448(SB)

// e^Y0 in Y0; Y1, Y2 and Y3 are lost.
#define EXP \
	VMAXPS    LEAST, Y0, Y0; \
	VMINPS    MOST, Y0, Y0; \
	VMULPS    LOG2E, Y0, Y1; \
	VROUNDPS  $8, Y1, Y1; \
	VMULPS    LN2HI, Y1, Y2; \
	VADDPS    Y2, Y0, Y2; \
	VMULPS    LN2LO, Y1, Y3; \
	VADDPS    Y3, Y2, Y2; \
	VMOVUPS   C6, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C5, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C4, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C3, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C2, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    ONE, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    ONE, Y3, Y3; \
	VCVTPS2DQ Y1, Y1; \
	VPADDD    BIASED, Y1, Y1; \
	VPSLLD    $23, Y1, Y1; \
	VMULPS    Y1, Y3, Y0

// e^Z0 in Z0; Z1, Z2 and Z3 are lost.
#define EXP512 \
	VMAXPS.BCST LEAST, Z0, Z0; \
	VMINPS.BCST MOST, Z0, Z0; \
	VMULPS.BCST LOG2E, Z0, Z1; \
	VRNDSCALEPS $8, Z1, Z1; \
	VMULPS.BCST LN2HI, Z1, Z2; \
	VADDPS      Z2, Z0, Z2; \
	VMULPS.BCST LN2LO, Z1, Z3; \
	VADDPS      Z3, Z2, Z2; \
	VMULPS.BCST C6, Z2, Z3; \
	VADDPS.BCST C5, Z3, Z3; \
	VMULPS      Z2, Z3, Z3; \
	VADDPS.BCST C4, Z3, Z3; \
	VMULPS      Z2, Z3, Z3; \
	VADDPS.BCST C3, Z3, Z3; \
	VMULPS      Z2, Z3, Z3; \
	VADDPS.BCST C2, Z3, Z3; \
	VMULPS      Z2, Z3, Z3; \
	VADDPS.BCST ONE, Z3, Z3; \
	VMULPS      Z2, Z3, Z3; \
	VADDPS.BCST ONE, Z3, Z3; \
	VCVTPS2DQ   Z1, Z1; \
	VPADDD.BCST BIASED, Z1, Z1; \
	VPSLLD      $23, Z1, Z1; \
	VMULPS      Z1, Z3, Z0

// The sum of Y0's lanes in the first of X0; X1 is lost.
#define FOLD \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0x0e, X0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0x01, X0, X1; \
	VADDSS       X1, X0, X0

// The greatest of Y0's lanes in the first of X0; X1 is lost.
#define GREATEST \
	VEXTRACTF128 $1, Y0, X1; \
	VMAXPS       X1, X0, X0; \
	VPSHUFD      $0x0e, X0, X1; \
	VMAXPS       X1, X0, X0; \
	VPSHUFD      $0x01, X0, X1; \
	VMAXSS       X1, X0, X0

// 1/X0 in X0; X1 is lost.
#define INVERSE \
	VMOVSS ONE, X1; \
	VDIVSS X0, X1, X0

// The addresses of a tile's four rows, R8 bytes apart: SI, R10, R11, R12.
#define FOUR_ROWS \
	LEAQ (SI)(R8*1), R10;  \
	LEAQ (SI)(R8*2), R11;  \
	LEAQ (R10)(R8*2), R12

#define NEXT_FOUR_BYTES \
	ADDQ $4, SI;  \
	ADDQ $4, R10; \
	ADDQ $4, R11; \
	ADDQ $4, R12

// Two registers of a row's sums, from and to memory.
#define READ_SUMS(AT, A, B) \
	VMOVDQU32 AT(DX), A; \
	VMOVDQU32 AT+64(DX), B

#define WRITE_SUMS(AT, A, B) \
	VMOVDQU32 A, AT(DX); \
	VMOVDQU32 B, AT+64(DX)

// Four of a row's bytes at AT, against the weights in Z16 and Z17; T is lost.
#define DOT_VNNI(AT, T, A, B) \
	VPBROADCASTD AT, T; \
	VPDPBUSD     Z16, T, A; \
	VPDPBUSD     Z17, T, B

#define VNNI_ARGUMENTS \
	MOVQ acc+0(FP), DX; \
	MOVQ x+8(FP), SI; \
	MOVQ stride+16(FP), R8; \
	MOVQ w+24(FP), DI; \
	MOVQ k4+32(FP), CX; \
	MOVQ ahead+40(FP), R13; \
	ADDQ DI, R13; \
	FOUR_ROWS

#define READ_FOUR_SUMS \
	READ_SUMS(0, Z0, Z1); \
	READ_SUMS(128, Z2, Z3); \
	READ_SUMS(256, Z4, Z5); \
	READ_SUMS(384, Z6, Z7)

#define WRITE_FOUR_SUMS \
	WRITE_SUMS(0, Z0, Z1); \
	WRITE_SUMS(128, Z2, Z3); \
	WRITE_SUMS(256, Z4, Z5); \
	WRITE_SUMS(384, Z6, Z7)

// The next weights in Z16 and Z17, and the first four rows against them.
#define DOT_FOUR \
	PREFETCHT0 (R13); \
	VMOVDQU32  (DI), Z16; \
	VMOVDQU32  64(DI), Z17; \
	DOT_VNNI((SI), Z18, Z0, Z1); \
	DOT_VNNI((R10), Z19, Z2, Z3); \
	DOT_VNNI((R11), Z20, Z4, Z5); \
	DOT_VNNI((R12), Z21, Z6, Z7)

#define NEXT_WEIGHTS \
	ADDQ $64, R13; \
	ADDQ $128, DI; \
	NEXT_FOUR_BYTES; \
	DECQ CX

// One register of a row: the sums at AT less zero times the weights' sums S, times unit and scales C, plus bias B.
#define FLOATS(AT, S, C, B) \
	VCVTDQ2PS AT(SI), Y0; \
	VMULPS    S, Y3, Y1; \
	VSUBPS    Y1, Y0, Y0; \
	VMULPS    Y2, Y0, Y0; \
	VMULPS    C, Y0, Y0; \
	VADDPS    B, Y0, Y0; \
	VMOVUPS   Y0, AT(DI)

#define DEQUANTISE_ARGUMENTS \
	MOVQ y+0(FP), DI; \
	MOVQ stride+8(FP), DX; \
	MOVQ acc+16(FP), SI; \
	MOVQ rows+24(FP), CX; \
	MOVQ sums+32(FP), R8; \
	MOVQ scales+40(FP), R9; \
	MOVQ bias+48(FP), R10; \
	MOVQ units+56(FP), R11; \
	MOVQ zeros+64(FP), R12

#define NEXT_ROW \
	ADDQ $4, R11; \
	ADDQ $4, R12; \
	ADDQ $128, SI; \
	ADDQ DX, DI; \
	DECQ CX

// What the products of floats are called with. The four rows of y are at DX, AX, R13, R9.
#define MATRIX_ARGUMENTS \
	MOVQ y+0(FP), DX; \
	MOVQ yStride+8(FP), R9; \
	MOVQ x+16(FP), SI; \
	MOVQ stride+24(FP), R8; \
	MOVQ w+32(FP), DI; \
	MOVQ wStride+40(FP), BX; \
	MOVQ k+48(FP), CX; \
	FOUR_ROWS; \
	LEAQ (DX)(R9*1), AX; \
	LEAQ (DX)(R9*2), R13; \
	LEAQ (AX)(R9*2), R9

// func matrixVNNI(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)
TEXT ·matrixVNNI(SB), NOSPLIT, $0-48
	VNNI_ARGUMENTS
	READ_FOUR_SUMS

four:
	DOT_FOUR
	NEXT_WEIGHTS
	JNZ four

	WRITE_FOUR_SUMS
	VZEROUPPER
	RET

// func matrixVNNI8(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)
// Eight rows: the weights are loaded half as often.
TEXT ·matrixVNNI8(SB), NOSPLIT, $0-48
	VNNI_ARGUMENTS
	READ_FOUR_SUMS
	READ_SUMS(512, Z8, Z9)
	READ_SUMS(640, Z10, Z11)
	READ_SUMS(768, Z12, Z13)
	READ_SUMS(896, Z14, Z15)

eight:
	DOT_FOUR
	DOT_VNNI((SI)(R8*4), Z22, Z8, Z9)
	DOT_VNNI((R10)(R8*4), Z23, Z10, Z11)
	DOT_VNNI((R11)(R8*4), Z24, Z12, Z13)
	DOT_VNNI((R12)(R8*4), Z25, Z14, Z15)
	NEXT_WEIGHTS
	JNZ eight

	WRITE_FOUR_SUMS
	WRITE_SUMS(512, Z8, Z9)
	WRITE_SUMS(640, Z10, Z11)
	WRITE_SUMS(768, Z12, Z13)
	WRITE_SUMS(896, Z14, Z15)
	VZEROUPPER
	RET

// One row of the four bytes at AT, against the weights' even bytes in Y8 and Y10 and their odd ones in Y9 and Y11.
#define DOT(AT, A, B) \
	VPBROADCASTD AT, Y13; \
	VPAND        Y15, Y13, Y12; \
	VPSRLW       $8, Y13, Y13; \
	VPMADDWD     Y8, Y12, Y14; \
	VPADDD       Y14, A, A; \
	VPMADDWD     Y9, Y13, Y14; \
	VPADDD       Y14, A, A; \
	VPMADDWD     Y10, Y12, Y14; \
	VPADDD       Y14, B, B; \
	VPMADDWD     Y11, Y13, Y14; \
	VPADDD       Y14, B, B

// func matrixAVX2(acc *int32, x *uint8, stride int, w *int8, k4, ahead int)
// Bytes become words before they are multiplied: VPMADDUBSW would cut sums off.
TEXT ·matrixAVX2(SB), NOSPLIT, $0-48
	MOVQ     stride+16(FP), R8
	MOVQ     $0, BX
	VPCMPEQW Y15, Y15, Y15
	VPSRLW   $8, Y15, Y15

half:
	MOVQ    acc+0(FP), DX
	ADDQ    BX, DX
	MOVQ    x+8(FP), SI
	FOUR_ROWS
	MOVQ    w+24(FP), DI
	ADDQ    BX, DI
	MOVQ    k4+32(FP), CX
	MOVQ    ahead+40(FP), R13
	ADDQ    DI, R13
	VMOVDQU (DX), Y0
	VMOVDQU 32(DX), Y1
	VMOVDQU 128(DX), Y2
	VMOVDQU 160(DX), Y3
	VMOVDQU 256(DX), Y4
	VMOVDQU 288(DX), Y5
	VMOVDQU 384(DX), Y6
	VMOVDQU 416(DX), Y7

bytes:
	PREFETCHT0 (R13)
	VMOVDQU     (DI), Y9
	VMOVDQU     32(DI), Y11
	VPSLLW      $8, Y9, Y8
	VPSRAW      $8, Y8, Y8
	VPSRAW      $8, Y9, Y9
	VPSLLW      $8, Y11, Y10
	VPSRAW      $8, Y10, Y10
	VPSRAW      $8, Y11, Y11
	DOT((SI), Y0, Y1)
	DOT((R10), Y2, Y3)
	DOT((R11), Y4, Y5)
	DOT((R12), Y6, Y7)
	ADDQ        $64, R13
	ADDQ        $128, DI
	NEXT_FOUR_BYTES
	DECQ        CX
	JNZ         bytes

	VMOVDQU Y0, (DX)
	VMOVDQU Y1, 32(DX)
	VMOVDQU Y2, 128(DX)
	VMOVDQU Y3, 160(DX)
	VMOVDQU Y4, 256(DX)
	VMOVDQU Y5, 288(DX)
	VMOVDQU Y6, 384(DX)
	VMOVDQU Y7, 416(DX)
	ADDQ    $64, BX
	CMPQ    BX, $128
	JNE     half
	VZEROUPPER
	RET

#define ROW(AT, A, B) \
	VBROADCASTSS AT, Y10; \
	VMULPS       Y8, Y10, Y11; \
	VADDPS       Y11, A, A; \
	VMULPS       Y9, Y10, Y12; \
	VADDPS       Y12, B, B

// func matrixFloatAVX2(y *float32, yStride int, x *float32, stride int, w *float32, wStride, k int)
TEXT ·matrixFloatAVX2(SB), NOSPLIT, $0-56
	MATRIX_ARGUMENTS
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y1
	VMOVUPS (AX), Y2
	VMOVUPS 32(AX), Y3
	VMOVUPS (R13), Y4
	VMOVUPS 32(R13), Y5
	VMOVUPS (R9), Y6
	VMOVUPS 32(R9), Y7

one:
	VMOVUPS (DI), Y8
	VMOVUPS 32(DI), Y9
	ROW((SI), Y0, Y1)
	ROW((R10), Y2, Y3)
	ROW((R11), Y4, Y5)
	ROW((R12), Y6, Y7)
	ADDQ    BX, DI
	NEXT_FOUR_BYTES
	DECQ    CX
	JNZ     one

	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	VMOVUPS Y2, (AX)
	VMOVUPS Y3, 32(AX)
	VMOVUPS Y4, (R13)
	VMOVUPS Y5, 32(R13)
	VMOVUPS Y6, (R9)
	VMOVUPS Y7, 32(R9)
	VZEROUPPER
	RET

// func matrixFloat512(y *float32, yStride int, x *float32, stride int, w *float32, wStride, k int)
TEXT ·matrixFloat512(SB), NOSPLIT, $0-56
	MATRIX_ARGUMENTS
	VMOVUPS (DX), Z0
	VMOVUPS (AX), Z1
	VMOVUPS (R13), Z2
	VMOVUPS (R9), Z3

one:
	VMOVUPS     (DI), Z4
	VMULPS.BCST (SI), Z4, Z5
	VMULPS.BCST (R10), Z4, Z6
	VMULPS.BCST (R11), Z4, Z7
	VMULPS.BCST (R12), Z4, Z8
	VADDPS      Z5, Z0, Z0
	VADDPS      Z6, Z1, Z1
	VADDPS      Z7, Z2, Z2
	VADDPS      Z8, Z3, Z3
	ADDQ        BX, DI
	NEXT_FOUR_BYTES
	DECQ        CX
	JNZ         one

	VMOVUPS Z0, (DX)
	VMOVUPS Z1, (AX)
	VMOVUPS Z2, (R13)
	VMOVUPS Z3, (R9)
	VZEROUPPER
	RET

// func axpyAVX2(y *float32, a float32, x *float32, n int)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-32
	MOVQ         y+0(FP), DI
	VBROADCASTSS a+8(FP), Y1
	MOVQ         x+16(FP), SI
	MOVQ         n+24(FP), CX

eight:
	VMULPS  (SI), Y1, Y0
	VADDPS  (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET

// func addBytesAVX2(y *float32, a float32, x *int8, n int)
TEXT ·addBytesAVX2(SB), NOSPLIT, $0-32
	MOVQ         y+0(FP), DI
	VBROADCASTSS a+8(FP), Y1
	MOVQ         x+16(FP), SI
	MOVQ         n+24(FP), CX

eight:
	VPMOVSXBD (SI), Y0
	VCVTDQ2PS Y0, Y0
	VMULPS    Y0, Y1, Y0
	VADDPS    (DI), Y0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $8, SI
	ADDQ      $32, DI
	SUBQ      $8, CX
	JNZ       eight
	VZEROUPPER
	RET

// func maxAVX2(y, x *float32, n int)
TEXT ·maxAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX

eight:
	VMOVUPS (SI), Y0
	VMAXPS  (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET

// func boundsAVX2(x *float32, n int) (low, high float32)
TEXT ·boundsAVX2(SB), NOSPLIT, $0-24
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

eight:
	VMOVUPS (SI), Y2
	VMINPS  Y2, Y0, Y0
	VMAXPS  Y2, Y1, Y1
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     eight

	VEXTRACTF128 $1, Y0, X2
	VMINPS       X2, X0, X0
	VPSHUFD      $0x0e, X0, X2
	VMINPS       X2, X0, X0
	VPSHUFD      $0x01, X0, X2
	VMINSS       X2, X0, X0
	VEXTRACTF128 $1, Y1, X2
	VMAXPS       X2, X1, X1
	VPSHUFD      $0x0e, X1, X2
	VMAXPS       X2, X1, X1
	VPSHUFD      $0x01, X1, X2
	VMAXSS       X2, X1, X1
	VMOVSS       X0, low+16(FP)
	VMOVSS       X1, high+20(FP)
	VZEROUPPER
	RET

// func quantiseAVX2(q *uint8, x *float32, n int, inverse, offset float32)
TEXT ·quantiseAVX2(SB), NOSPLIT, $0-32
	MOVQ         q+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS inverse+24(FP), Y4
	VBROADCASTSS offset+28(FP), Y5

eight:
	VMULPS       (SI), Y4, Y0
	VADDPS       Y5, Y0, Y0
	VCVTTPS2DQ   Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
	VPACKUSWB    X0, X0, X0
	VMOVQ        X0, (DI)
	ADDQ         $32, SI
	ADDQ         $8, DI
	SUBQ         $8, CX
	JNZ          eight
	VZEROUPPER
	RET

// func dequantiseAVX2(y *float32, stride int, acc *int32, rows int, sums, scales, bias, units, zeros *float32)
TEXT ·dequantiseAVX2(SB), NOSPLIT, $0-72
	DEQUANTISE_ARGUMENTS
	VMOVUPS (R8), Y4
	VMOVUPS 32(R8), Y5
	VMOVUPS 64(R8), Y6
	VMOVUPS 96(R8), Y7
	VMOVUPS (R9), Y8
	VMOVUPS 32(R9), Y9
	VMOVUPS 64(R9), Y10
	VMOVUPS 96(R9), Y11
	VMOVUPS (R10), Y12
	VMOVUPS 32(R10), Y13
	VMOVUPS 64(R10), Y14
	VMOVUPS 96(R10), Y15

row:
	VBROADCASTSS (R11), Y2
	VBROADCASTSS (R12), Y3
	FLOATS(0, Y4, Y8, Y12)
	FLOATS(32, Y5, Y9, Y13)
	FLOATS(64, Y6, Y10, Y14)
	FLOATS(96, Y7, Y11, Y15)
	NEXT_ROW
	JNZ row
	VZEROUPPER
	RET

// func dequantise512(y *float32, stride int, acc *int32, rows int, sums, scales, bias, units, zeros *float32)
TEXT ·dequantise512(SB), NOSPLIT, $0-72
	DEQUANTISE_ARGUMENTS
	VMOVUPS (R8), Z4
	VMOVUPS 64(R8), Z5
	VMOVUPS (R9), Z6
	VMOVUPS 64(R9), Z7
	VMOVUPS (R10), Z8
	VMOVUPS 64(R10), Z9

row:
	VBROADCASTSS (R11), Z10
	VBROADCASTSS (R12), Z11
	VCVTDQ2PS    (SI), Z0
	VCVTDQ2PS    64(SI), Z1
	VMULPS       Z4, Z11, Z2
	VMULPS       Z5, Z11, Z3
	VSUBPS       Z2, Z0, Z0
	VSUBPS       Z3, Z1, Z1
	VMULPS       Z10, Z0, Z0
	VMULPS       Z10, Z1, Z1
	VMULPS       Z6, Z0, Z0
	VMULPS       Z7, Z1, Z1
	VADDPS       Z8, Z0, Z0
	VADDPS       Z9, Z1, Z1
	VMOVUPS      Z0, (DI)
	VMOVUPS      Z1, 64(DI)
	NEXT_ROW
	JNZ          row
	VZEROUPPER
	RET

// func geluAVX2(x *float32, n int)
TEXT ·geluAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX

eight:
	VMOVUPS (DI), Y4
	VMULPS  Y4, Y4, Y0
	VMULPS  Y4, Y0, Y0
	VMULPS  CUBE, Y0, Y0
	VADDPS  Y4, Y0, Y0
	VMULPS  SLOPE, Y0, Y0
	EXP
	VADDPS  ONE, Y0, Y0
	VDIVPS  Y0, Y4, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET

// func gelu512(x *float32, n int)
TEXT ·gelu512(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX

sixteen:
	VMOVUPS     (DI), Z4
	VMULPS      Z4, Z4, Z0
	VMULPS      Z4, Z0, Z0
	VMULPS.BCST CUBE, Z0, Z0
	VADDPS      Z4, Z0, Z0
	VMULPS.BCST SLOPE, Z0, Z0
	EXP512
	VADDPS.BCST ONE, Z0, Z0
	VDIVPS      Z0, Z4, Z0
	VMOVUPS     Z0, (DI)
	ADDQ        $64, DI
	SUBQ        $16, CX
	JNZ         sixteen
	VZEROUPPER
	RET

// func addNormAVX2(x, y, gain, shift *float32, n int, size float32)
TEXT ·addNormAVX2(SB), NOSPLIT, $0-44
	MOVQ   x+0(FP), DI
	MOVQ   y+8(FP), SI
	MOVQ   gain+16(FP), R8
	MOVQ   shift+24(FP), R9
	MOVQ   n+32(FP), CX
	VMOVSS size+40(FP), X6
	VXORPS Y0, Y0, Y0
	XORQ   AX, AX

sum:
	VMOVUPS (DI)(AX*4), Y2
	VADDPS  (SI)(AX*4), Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	VADDPS  Y2, Y0, Y0
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     sum
	FOLD
	VDIVSS       X6, X0, X0
	VBROADCASTSS X0, Y4
	VXORPS       Y0, Y0, Y0
	XORQ         AX, AX

square:
	VMOVUPS (DI)(AX*4), Y2
	VSUBPS  Y4, Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	VMULPS  Y2, Y2, Y2
	VADDPS  Y2, Y0, Y0
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     square
	FOLD
	VDIVSS       X6, X0, X0
	VADDSS       TINY, X0, X0
	VSQRTSS      X0, X0, X0
	INVERSE
	VBROADCASTSS X0, Y4
	XORQ         AX, AX

scale:
	VMULPS  (DI)(AX*4), Y4, Y2
	VMULPS  (R8)(AX*4), Y2, Y2
	VADDPS  (R9)(AX*4), Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     scale
	VZEROUPPER
	RET

// func softmaxAVX2(x *float32, n int, scale float32)
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Y7
	VMOVUPS      (DI), Y0
	XORQ         AX, AX

top:
	VMAXPS (DI)(AX*4), Y0, Y0
	ADDQ   $8, AX
	CMPQ   AX, CX
	JLT    top
	GREATEST
	VBROADCASTSS X0, Y6
	VXORPS       Y5, Y5, Y5
	XORQ         AX, AX

power:
	VMOVUPS (DI)(AX*4), Y0
	VSUBPS  Y6, Y0, Y0
	VMULPS  Y7, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)(AX*4)
	VADDPS  Y0, Y5, Y5
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     power
	VMOVAPS Y5, Y0
	FOLD
	INVERSE
	VBROADCASTSS X0, Y4
	XORQ         AX, AX

divide:
	VMULPS  (DI)(AX*4), Y4, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     divide
	VZEROUPPER
	RET

// func softmax512(x *float32, n int, scale float32)
TEXT ·softmax512(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Z7
	VMOVUPS      (DI), Z0
	XORQ         AX, AX

top:
	VMAXPS        (DI)(AX*4), Z0, Z0
	ADDQ          $16, AX
	CMPQ          AX, CX
	JLT           top
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS        Y1, Y0, Y0
	GREATEST
	VBROADCASTSS  X0, Z6
	VXORPS        Y5, Y5, Y5
	XORQ          AX, AX

power:
	VMOVUPS       (DI)(AX*4), Z0
	VSUBPS        Z6, Z0, Z0
	VMULPS        Z7, Z0, Z0
	EXP512
	VMOVUPS       Z0, (DI)(AX*4)
	VADDPS        Y0, Y5, Y5
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y5, Y5
	ADDQ          $16, AX
	CMPQ          AX, CX
	JLT           power
	VMOVAPS       Y5, Y0
	FOLD
	INVERSE
	VBROADCASTSS  X0, Z4
	XORQ          AX, AX

divide:
	VMULPS  (DI)(AX*4), Z4, Z0
	VMOVUPS Z0, (DI)(AX*4)
	ADDQ    $16, AX
	CMPQ    AX, CX
	JLT     divide
	VZEROUPPER
	RET
